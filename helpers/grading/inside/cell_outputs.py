"""The outputs of one cell, bounded in number and in bytes."""

import io

TEXT_BYTES = 200_000  # of one cell's printed text
RICH_BYTES = 3_000_000  # of one cell's figures and other displays
MAX_OUTPUTS = 100  # of one cell
ERROR_BYTES = 20_000
CUT = "\n[the rest of the output was cut]\n"


class Outputs:
    """The outputs of one cell, bounded in number and in bytes."""

    def __init__(self):
        self.items: list[dict] = []
        self.text_left = TEXT_BYTES
        self.rich_left = RICH_BYTES

    def stream(self, name: str, text: str) -> None:
        if self.text_left <= 0 or not text:
            return
        if len(text) > self.text_left:
            text = text[: self.text_left] + CUT
            self.text_left = 0
        self.text_left -= len(text)
        if self.items and self.items[-1]["output_type"] == "stream" and self.items[-1]["name"] == name:
            self.items[-1]["text"] += text
        elif len(self.items) < MAX_OUTPUTS:
            self.items.append({"output_type": "stream", "name": name, "text": text})

    def rich(self, kind: str, data: dict, metadata: dict | None = None) -> None:
        data = {str(mime): body for mime, body in data.items() if isinstance(body, str)}
        size = sum(map(len, data.values()))
        if size > self.rich_left or len(self.items) >= MAX_OUTPUTS:
            self.stream("stderr", CUT)
            return
        self.rich_left -= size
        item: dict = {"output_type": kind, "data": data, "metadata": {}}
        if kind == "execute_result":
            item["execution_count"] = None
        self.items.append(item)

    def error(self, name: str, value: str, traceback: list[str]) -> None:
        lines = "\n".join(traceback)[-ERROR_BYTES:].split("\n")
        self.items.append({"output_type": "error", "ename": name, "evalue": value[:ERROR_BYTES], "traceback": lines})

    def clear(self) -> None:
        self.items.clear()


class Stream(io.TextIOBase):
    """What learner code sees as stdout or stderr."""

    encoding = "utf-8"
    errors = "replace"

    def __init__(self, outputs: Outputs, name: str):
        self.outputs, self.name = outputs, name

    def writable(self) -> bool:
        return True

    def write(self, text) -> int:
        if not isinstance(text, str):
            raise TypeError(f"write() argument must be str, not {type(text).__name__}")
        self.outputs.stream(self.name, text)
        return len(text)
