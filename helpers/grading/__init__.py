import sys

# jsonschema, which validates notebooks, imports this optional package if it is installed. That takes longer than all
# other imports together, and no notebook needs it.
sys.modules.setdefault("rfc3987_syntax", None)  # type: ignore[arg-type]
