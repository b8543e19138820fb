"""Wrong answers to the exercises of lesson 2 that are not among its key's known mistakes."""

REFUSED = {
    "equivariance_error": [
        ("difference = f(x[perm]) - f(x)[perm] -> x = x.float()\n    difference = f(x[perm]) - f(x)[perm]",),
        ("return difference.abs().max().item() -> return round(difference.abs().max().item(), 4)",),
        (".max().item() -> .max()",),
    ],
    "sinusoidal_positions": [
        ("raise ValueError( -> raise AssertionError(",),
        ("if d_model % 2: -> if False:", "pairs.flatten(1) -> pairs.flatten(1)[:, :d_model]"),
    ],
    "add_positions": [
        ("table[:T] -> table[:T].detach()",),
        ("table[:T] -> table[:T].float()",),
        ("x + table[:T] -> x.add_(table[:T])",),
        ("if T > len(table): -> if False:", "table[:T] -> table[torch.arange(T) % len(table)]"),
    ],
    "fixed_position_layer": [("pe.squeeze(1)[: x.size(1)] -> pe.squeeze(1)[: x.size(1)].float()",)],
    "shift_matrix": [("raise ValueError( -> raise AssertionError(",), ("offset / 10000 -> abs(offset) / 10000",)],
    "apply_rope": [("positions[:, None] -> (positions - positions[:1])[:, None]",)],
}
