"""A workgroup as loops over its lanes: what is cut where, and what is kept."""

from __future__ import annotations

import re

import pytest
from device_kernels import in_lane_loops, straight, suite_kernels
from written_kernels import BARRIER, loop, memory, plain, sum_of, value

WAVE = value("float", "w", "gen::dpp_reduce<sum, 64>(v)", "wave")
BLOCK = value("float", "b", "gen::reduce_waves<sum, 4>(w, lds)", "block")
BODY = [
    value("float", "v", "x[gen::global_id()]"),
    memory("float", "lds", 4),
    value("float", "unused", "v * 2"),
    WAVE,
    BLOCK,
    plain("y[gen::global_id()] = b.v + gen::v(b);"),
]


def test_what_runs_where() -> None:
    assert straight(BODY)[1:3] == ["    GEN_LDS(float, lds, 4);", "    const float unused = v * 2;"]
    made = in_lane_loops(BODY)
    assert made.members == ("gen::lanes<float> w_;", "gen::lanes<float> b_;", "gen::lanes<float> v_;")
    assert (
        "\n".join(made.lines)
        == """\
    GEN_LDS(float, lds, 4);
    GEN_WAVES {
        GEN_LANES {
            const float v = gen_kept.v_[gen_lane] = x[gen::global_id()];
            const float unused = v * 2;
        }
        gen_kept.w_ = gen::dpp_reduce<sum, 64>(gen_kept.v_);
        gen::host::enter(gen_kept.b_, gen::reduce_waves<sum, 4>(gen_kept.w_, lds));
    }
    gen::host::between(gen_kept.b_, gen::reduce_waves<sum, 4>(gen_kept.w_, lds));
    GEN_WAVES {
        gen::host::leave(gen_kept.b_, gen::reduce_waves<sum, 4>(gen_kept.w_, lds));
        GEN_LANES {
            const auto b = gen_kept.b_[gen_lane];
            y[gen::global_id()] = b.v + gen::v(b);
        }
    }"""
    )


def test_a_loop_without_meetings_is_a_lane_s_own() -> None:
    made = in_lane_loops([loop("j", 2, plain("x += 1;")), BARRIER])
    assert [line.strip() for line in made.lines] == [
        *("GEN_WAVES {", "GEN_LANES {", "for (int j = 0; j < 2; ++j) {", "x += 1;", "}", "}", "}", "// gen::barrier();")
    ]


def test_a_loop_with_meetings_goes_around() -> None:
    inner = loop("j", 2, plain("t += j;"), BARRIER)
    made = in_lane_loops([sum_of("t"), loop("i", 3, inner), plain("y[0] = t;")])
    assert made.members == ("gen::lanes<sum_float::acc> t_;",)
    text = "\n".join(made.lines)
    assert "            sum_float::acc& t = gen_kept.t_[gen_lane] = sum_float::identity();" in text
    assert re.findall(r"for|GEN_WAVES", text) == ["GEN_WAVES", "for", "for", "GEN_WAVES", "GEN_WAVES"]
    assert text.count("            auto& t = gen_kept.t_[gen_lane];") == 2


@pytest.mark.slow
@pytest.mark.parametrize("target", ["gfx942", "gfx1100", "sm_90"])
def test_kernels_of_the_suite(target: str) -> None:
    """Loops over waves go from barrier to barrier; of a kernel whose lanes do not meet there is one text."""
    kernels = suite_kernels(target)
    assert any(kernel.in_loops for _, kernel in kernels)
    for case, kernel in kernels:
        if not kernel.in_loops:
            assert kernel.host_text == kernel.text, case
            continue
        body = kernel.text.partition("GEN_KERNEL")[2]
        meetings = len(re.findall(r"gen::barrier|gen::reduce_waves|gen::reduce_parts", body))
        assert kernel.host_text.count("GEN_WAVES {") == meetings + 1, case
        assert kernel.host_text.count("GEN_LANES {") <= meetings + body.count("gen::dpp_reduce") + 1, case
