import sys

# Notebooks are validated with jsonschema, which looks for this grammar of IRIs first: importing it takes longer than
# all the rest, and no notebook needs it.
sys.modules.setdefault("rfc3987_syntax", None)  # type: ignore[arg-type]
