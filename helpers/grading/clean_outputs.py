"""Outputs of cells as nbformat wants them, whatever a learner's process made of them."""

from helpers.grading.inside.cell_outputs import ERROR_BYTES, RICH_BYTES, TEXT_BYTES


def error_output(name: str, text: str) -> dict:
    return {"output_type": "error", "ename": name, "evalue": text, "traceback": [f"{name}: {text}"]}


def clean_output(output: dict) -> dict:
    """An output as nbformat wants it, whatever the learner's process made of it, and no longer than the worker makes
    one. Raises KeyError if it is none."""
    kind = output["output_type"]
    if kind == "stream":
        name = "stderr" if output["name"] == "stderr" else "stdout"
        return {"output_type": "stream", "name": name, "text": str(output["text"])[: 2 * TEXT_BYTES]}
    if kind == "error":
        lines = [str(line)[:ERROR_BYTES] for line in output["traceback"][:200]]
        while sum(map(len, lines)) > 2 * ERROR_BYTES:
            del lines[: max(1, len(lines) // 2)]
        return {
            "output_type": "error",
            "ename": str(output["ename"])[:100],
            "evalue": str(output["evalue"])[:ERROR_BYTES],
            "traceback": lines,
        }
    if kind not in ("display_data", "execute_result"):
        raise KeyError(kind)
    data = {str(mime)[:80]: body for mime, body in output["data"].items() if isinstance(body, str)}
    if sum(map(len, data.values())) > 2 * RICH_BYTES:
        data = {"text/plain": "This output is too large and was left out."}
    cleaned = {"output_type": kind, "data": data, "metadata": {}}
    return cleaned | {"execution_count": None} if kind == "execute_result" else cleaned
