"""What the right solutions here share, over the solution."""

del LONG
del (QUERIES, KEYS)
del LOG2_E
del LN_2
del sweep
del attention_kernel
del is_described
del on_hopper
del tile_of

ROWS = 32

DESIGN = {
    "attention": {
        "flops": "4 * B * Hq * Sq * Sk * D",
        "bytes": "2 * B * D * e * (Hq * Sq + Hk * Sk)",
        "bound": "compute",
        "grid": "B * Hq * ceil(Sq / ROWS)",
        "tile": "ROWS * max(16, 2 ** ceil(log2(D)))",
    },
    "causal attention": {
        "flops": "4 * B * Hq * D * Sq * (Sk + 1) / 2",
        "bytes": "2 * B * D * e * (Hq * Sq + Hk * Sk)",
        "bound": "compute",
        "grid": "B * Hq * cdiv(Sq, ROWS)",
        "tile": "ROWS * D",
    },
}
