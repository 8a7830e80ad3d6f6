# SPDX-License-Identifier: Apache-2.0
"""What /proc/self/status says of a process that nothing is left to."""

from harness import check_equal

STATUS = "/proc/self/status"
# No capability, and none that it could get by executing something; one filter of guest-init's.
NOTHING = {
    **dict.fromkeys(("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"), "0" * 16),
    **dict.fromkeys(("Uid", "Gid"), "\t".join(4 * ["65534"])),
    "Groups": "",
    "NoNewPrivs": "1",
    "Seccomp": "2",
    "Seccomp_filters": "1",
}


def check_given_up(status, what):
    """status: the text of that file."""
    found = dict(line.split(":", 1) for line in status.splitlines() if ":" in line)
    check_equal({name: found.get(name, "no such line").strip() for name in NOTHING}, NOTHING, what)
