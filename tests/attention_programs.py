"""Programs that are attention: a softmax whose weights are multiplied by values. Texts by name."""

from __future__ import annotations

ATTENTION = {
    "attention": """
        q = @param:q -> half{2, 2, 96, 64}
        k = @param:k -> half{2, 2, 130, 64}
        v = @param:v -> half{2, 2, 130, 64}
        t = transpose[permutation={0, 1, 3, 2}](k)
        d = dot(q, t)
        s = mul(d, 0.125)
        p = softmax[axis=3](s)
        z = dot(p, v)
        @return(z)""",
    "attention_deep_and_masked": """
        q = @param:q -> bf16{3, 70, 96}
        k = @param:k -> bf16{3, 96, 70}
        v = @param:v -> bf16{3, 70, 24}
        d = dot(q, k)
        r = iota[lens={3, 70, 70}, axis=1]()
        c = iota[lens={3, 70, 70}, axis=2]()
        later = greater(c, r)
        s = where(later, -inf, d)
        p = softmax[axis=2](s)
        z = dot(p, v)
        @return(z)""",
    "attention_along_the_first_axis": """
        q = @param:q -> half{64, 80}
        k = @param:k -> half{64, 130}
        v = @param:v -> half{32, 130}
        t = transpose[permutation={1, 0}](k)
        d = dot(t, q)
        p = softmax[axis=0](d)
        z = dot(v, p)
        @return(z)""",
    "attention_of_few_queries": """
        q = @param:q -> half{2, 4, 64}
        k = @param:k -> half{2, 64, 8192}
        v = @param:v -> half{2, 8192, 64}
        d = dot(q, k)
        p = softmax[axis=2](d)
        z = dot(p, v)
        @return(z)""",
}

OF_STORED_SCORES = """
        s = @param:s -> half{2, 128, 256}
        v = @param:v -> half{2, 256, 64}
        p = softmax[axis=2](s)
        z = dot(p, v)
        @return(z)"""

OF_FEW_STORED_SCORES = """
        s = @param:s -> bf16{3, 3, 3, 2}
        v = @param:v -> bf16{1, 1, 2, 2}
        p = softmax[axis=3](s)
        z = dot(p, v)
        @return(z)"""
