"""Wrong answers to the exercises of lesson 4 that are not among its key's known mistakes."""

JACOBIAN = "return torch.diag_embed(p) - outer"
DIFFERENCES = """return softmax_jacobian(p) @ K / divisor -> steps = torch.eye(len(q), dtype=q.dtype) * 1e-2
    up = [torch.softmax(K @ (q + e) / divisor, dim=0) for e in steps]
    down = [torch.softmax(K @ (q - e) / divisor, dim=0) for e in steps]
    return torch.stack([(a - b) / 2e-2 for a, b in zip(up, down)], dim=1)"""

REFUSED = {
    "scaled_scores": [
        ("return Q @ K.transpose(-2, -1) / d_k**0.5 -> return (Q @ K.transpose(-2, -1) / d_k**0.5).squeeze()",),
        ("K.transpose(-2, -1) -> K.T",),
    ],
    "softmax_jacobian": [(f"{JACOBIAN} -> return (torch.diag_embed(p) - outer).squeeze()",)],
    "max_gradient": [("(p * (1 - p)).amax(dim=-1) -> (p * (1 - p)).amax(dim=-1).squeeze()",)],
    "weights_jacobian": [
        ("torch.softmax(K @ q / divisor, -> torch.softmax(K @ q / (divisor + 1e-4),",),
        (DIFFERENCES,),
        (DIFFERENCES.replace("e-2", "e-3"),),
    ],
    "head_scores": [("return scaled_scores(q, k) -> return scaled_scores(q, k).squeeze()",)],
}

EXPLAINED = {
    "weights_jacobian": [
        (
            "return softmax_jacobian(p) @ K / divisor"
            " -> return torch.autograd.functional.jacobian(lambda q: torch.softmax(K @ q / divisor, dim=0), q)",
            "forbidden_call",
        )
    ],
    "softmax_jacobian": [
        (
            f"{JACOBIAN} -> eye = torch.eye(p.shape[-1], dtype=p.dtype)\n"
            "    return (p.log()[..., :, None].exp() * (eye - p[..., None, :])).nan_to_num()",
            "nan",
            "the gradient",
        )
    ],
}
