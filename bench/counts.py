# SPDX-License-Identifier: Apache-2.0
"""Counts of the kernel's: exits of KVM by reason, nested page faults, system calls and page
faults of the VMM. Histograms of its trace events, so the counting itself adds no events.
"""

import re
from pathlib import Path

TRACE = Path("/sys/kernel/debug/tracing")
VMM = 'comm~"skillvm-v*"'
# Event, key of its histogram, filter.
EVENTS = {
    "kvm/kvm_exit": ("exit_reason", None),
    "kvm/kvm_page_fault": ("error_code", None),
    "raw_syscalls/sys_enter": ("id", VMM),
    "exceptions/page_fault_user": ("error_code", VMM),
    "exceptions/page_fault_kernel": ("error_code", VMM),
}
# The exit that is a nested page fault: SVM's and VMX's code.
NESTED_FAULT = {"svm": 0x400, "vmx": 48}


class Counting:
    """Counts from `with` until `read`; `reset` begins anew."""

    def __enter__(self):
        if not (TRACE / "events/kvm/kvm_exit/trigger").exists():
            raise RuntimeError(f"{TRACE} has no events of KVM, or this is not root")
        self.triggers = {}
        for event, (key, condition) in EVENTS.items():
            self.triggers[event] = f"hist:keys={key}:size=2048" + (
                f" if {condition}" if condition else "")
            self._write(event, self.triggers[event])
        return self

    def __exit__(self, *_):
        for event, trigger in self.triggers.items():
            self._write(event, "!" + trigger)

    def _write(self, event, text):
        (TRACE / "events" / event / "trigger").write_text(text)

    def reset(self):
        for event, trigger in self.triggers.items():
            self._write(event, "!" + trigger)
            self._write(event, trigger)

    def _hist(self, event):
        key = EVENTS[event][0]
        out = {}
        for line in (TRACE / "events" / event / "hist").read_text().split("\n"):
            found = re.search(rf"{key}:\s*(\S+).*hitcount:\s*(\d+)", line)
            if found:
                out[int(found[1])] = out.get(int(found[1]), 0) + int(found[2])
        return out

    def read(self):
        exits = self._hist("kvm/kvm_exit")
        calls = self._hist("raw_syscalls/sys_enter")
        flags = Path("/proc/cpuinfo").read_text()
        nested = NESTED_FAULT["svm" if re.search(r"\bsvm\b", flags) else "vmx"]
        return {
            "exits": sum(exits.values()),
            "nested_page_faults": exits.get(nested, 0),
            "vmm_page_faults": sum(self._hist("exceptions/page_fault_user").values())
            + sum(self._hist("exceptions/page_fault_kernel").values()),
            "vmm_system_calls": sum(calls.values()),
            "exits_by_reason": {f"0x{code:x}": n for code, n in sorted(exits.items())},
            "vmm_system_calls_by_number": {str(n): times for n, times in sorted(calls.items())},
        }
