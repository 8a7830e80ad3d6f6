# SPDX-License-Identifier: Apache-2.0
"""Holds what operators take over against what there is: the Grafana dashboard and the alert rules
against docs/metrics.md, the files of examples/fleet against the daemon and the server that read
them, and all of them against docs/fleet.md, which names each.

    fleet_files.py SKILLVMD
    fleet_files.py --rules

Queries are looked at for names and labels of metrics. Without nats-server or systemd-analyze their
part is left out, and the status is 77. With --rules promtool checks the alert rules, and when some
of them fire (fleet_alerts.yaml); no package of cmake/packages.txt brings it, for Debian's has 96 MB
and a service that it starts, and without it the status is 77.
"""

import json
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import yaml

ROOT = Path(__file__).resolve().parents[1]
DASHBOARD = ROOT / "api" / "service" / "skillvm-grafana.json"
ALERTS = ROOT / "api" / "service" / "skillvm-alerts.yaml"
EXAMPLES = ROOT / "examples" / "fleet"
OF_A_SCRAPE = {"job", "instance"}
# What an execution may take at most (LIMIT_TIMEOUT_MS), and what saying how all ended takes.
STOP_MIN_S = 600
STOP_MARGIN_S = 30
METRIC = re.compile(r"\b(?:skillvm|process)_[a-z_]+")


def metrics_of(text):
    """Name -> (type, labels) of the table of docs/metrics.md."""
    found = {}
    for line in text.splitlines():
        cells = [cell.strip() for cell in line.split("|")]
        if len(cells) < 5 or not cells[1].startswith("`"):
            continue
        for name in re.findall(r"`([^`]+)`", cells[1]):
            found[name] = (cells[2], set(re.findall(r"`([^`]+)`", cells[3])))
    return found


def faults_of(expr, metrics):
    """What is wrong with a query, by the names in it."""
    faults, grouped = [], set()
    for words in re.findall(r"\bby \(([^)]*)\)", expr):
        grouped |= {word.strip() for word in words.split(",")}
    labels = set(OF_A_SCRAPE)
    for found in METRIC.finditer(expr):
        name, is_part = found[0], re.fullmatch(r"(.*)_(bucket|sum|count)", found[0])
        if is_part and metrics.get(is_part[1], ("",))[0] == "histogram":
            name = is_part[1]
            labels.add("le")
        if name not in metrics:
            faults.append(f"there is no metric {name}")
            continue
        kind, own = metrics[name]
        labels |= own
        chosen = re.match(r"\{([^}]*)\}", expr[found.end():])
        used = set(re.findall(r"([a-z_]+)\s*(?:=~|!~|!=|=)", chosen[1])) if chosen else set()
        faults += [f"{name} has no label {label}" for label in sorted(used - own - OF_A_SCRAPE)]
        behind = expr[:found.start()]
        if kind != "gauge" and not re.search(r"\b(rate|increase)\($", behind):
            faults.append(f"{name} is a {kind}: what is asked is its rate")
    faults += [f"nothing has the label {label}" for label in sorted(grouped - labels)]
    return faults


def rules(document):
    return [rule for group in document["groups"] for rule in group["rules"]]


def check_alerts(document, metrics):
    names = [rule["alert"] for rule in rules(document)]
    for rule in rules(document):
        where = f"alert {rule['alert']}"
        yield from (f"{where}: {fault}" for fault in faults_of(rule["expr"], metrics))
        if not rule["annotations"].get("summary"):
            yield f"{where} has no summary"
        if rule["labels"].get("severity") not in ("critical", "warning", "info"):
            yield f"{where} has no severity"
        if names.count(rule["alert"]) > 1:
            yield f"{where} is there twice"


def check_dashboard(document, metrics):
    ids = [panel["id"] for panel in document["panels"]]
    if len(set(ids)) != len(ids):
        yield "two panels have one id"
    for panel in document["panels"]:
        targets = panel.get("targets", [])
        if panel["type"] != "row" and not targets:
            yield f"panel {panel['title']}: it shows nothing"
        for target in targets:
            yield from (f"panel {panel['title']}: {fault}"
                        for fault in faults_of(target["expr"], metrics))
    for variable in document["templating"]["list"]:
        for name in METRIC.findall(str(variable["query"])):
            if name not in metrics:
                yield f"variable {variable['name']}: there is no metric {name}"


def check_check(metrics):
    """That what is wrong is seen."""
    for expr in ("skillvm_nothing > 0", 'rate(skillvm_executions_total{cause="x"}[5m])',
                 "skillvm_executions_total > 0", "sum by (cause) (skillvm_machines)",
                 "rate(skillvm_machines_bucket[5m])"):
        if not faults_of(expr, metrics):
            yield f"nothing is found wrong with {expr}"
    for expr in ("histogram_quantile(0.9, sum by (le) (rate(skillvm_execution_seconds_bucket[5m])))",
                 'skillvm_machines_parked{kind="used",job="x"} > process_open_fds'):
        yield from (f"{expr}: {fault}" for fault in faults_of(expr, metrics))


def run(words):
    done = subprocess.run([str(word) for word in words], capture_output=True, text=True, check=False)
    return [] if done.returncode == 0 else [f"{' '.join(map(str, words))}: {done.stdout}{done.stderr}"]


def documents(path):
    return [document for document in yaml.safe_load_all(path.read_text()) if document]


def inside(kind, name):
    """A file in a ConfigMap of the Kubernetes example."""
    return next(d["data"][name] for d in documents(EXAMPLES / "kubernetes.yaml")
                if d["kind"] == "ConfigMap" and d["metadata"]["name"] == kind)


def pod_of(kind, name):
    return next(d["spec"]["template"]["spec"] for d in documents(EXAMPLES / "kubernetes.yaml")
                if d["kind"] == kind and d["metadata"]["name"] == name)


def environment(pod):
    """What a pod's container has, with a name in place of what a cluster would put there."""
    found = {}
    for each in pod["containers"][0]["env"]:
        value = each.get("value", each["name"].lower().replace("_", "-"))
        found[each["name"]] = re.sub(r"\$\(([A-Z_]+)\)", lambda name: found[name[1]], value)
    return [f"{name}={value}" for name, value in found.items()]


def check_settings(skillvmd, work):
    (work / "pod.yaml").write_text(inside("skillvmd", "skillvmd.yaml"))
    in_pod = environment(pod_of("DaemonSet", "skillvmd"))
    for path, more in ((EXAMPLES / "skillvmd.yaml", []), (work / "pod.yaml", in_pod)):
        yield from run(["env", "-i", *more, skillvmd, "--config", path, "--data", work, "--check-config"])


def seconds(duration):
    number, unit = re.fullmatch(r"(\d+)(s|m|h)", duration).groups()
    return int(number) * {"s": 1, "m": 60, "h": 3600}[unit]


def check_time_to_end():
    """A pod that is ended lives until what ran in it has had all the time that its settings give."""
    settings = yaml.safe_load(inside("skillvmd", "skillvmd.yaml"))
    pod = pod_of("DaemonSet", "skillvmd")
    stop, grace = seconds(settings.get("stop_timeout", "10s")), pod["terminationGracePeriodSeconds"]
    if stop < STOP_MIN_S:
        yield f"DaemonSet: stop_timeout of {stop} s cancels what runs for longer"
    if grace < stop + STOP_MARGIN_S:
        yield f"DaemonSet: {grace} s of grace are no {STOP_MARGIN_S} s more than the {stop} s of stop_timeout"


def check_who_comes():
    """The servers of Kubernetes take nobody without a password, and a policy covers all their ports."""
    if "authorization" not in inside("nats", "nats.conf"):
        yield "the servers of Kubernetes take everybody"
    pod = pod_of("StatefulSet", "nats")
    ports = {port["containerPort"] for port in pod["containers"][0]["ports"]}
    policies = [d["spec"] for d in documents(EXAMPLES / "kubernetes.yaml") if d["kind"] == "NetworkPolicy"]
    if not any(p["podSelector"]["matchLabels"] == {"app": "nats"} and p["policyTypes"] == ["Ingress"]
               and all(rule.get("from") for rule in p["ingress"])
               and {port["port"] for rule in p["ingress"] for port in rule["ports"]} == ports for p in policies):
        yield f"no NetworkPolicy says who may come to {sorted(ports)} of nats"
    for kind, name in (("DaemonSet", "skillvmd"), ("StatefulSet", "nats")):
        if not any("secretKeyRef" in each.get("valueFrom", {}) for each in pod_of(kind, name)["containers"][0]["env"]):
            yield f"{kind} {name} has no password of a Secret"


def check_servers(work):
    (work / "pod.conf").write_text(inside("nats", "nats.conf"))
    for path in (EXAMPLES / "nats-server.conf", work / "pod.conf"):
        yield from run(["env", *environment(pod_of("StatefulSet", "nats")), shutil.which("nats-server"), "-t", "-c", path])


def check_units(work):
    """Each as a drop-in of a unit as Debian's is, as far as that matters."""
    units = {"nats-server": "[Service]\nExecStart=/bin/true\nUser=nats\n",
             "skillvmd": "[Unit]\nAfter=network.target\n[Service]\nExecStart=/bin/true\n"}
    for name, text in units.items():
        (work / f"{name}.service").write_text(text)
        (work / f"{name}.service.d").mkdir()
        shutil.copy(EXAMPLES / f"{name}.service.conf", work / f"{name}.service.d" / "fleet.conf")
    done = subprocess.run(["systemd-analyze", "verify", "--man=no",
                           *(str(work / f"{name}.service") for name in units)],
                          capture_output=True, text=True, check=False)
    # Only of these: the machine's own may have faults too.
    yield from (line for line in done.stderr.splitlines() if str(work) in line or "fleet.conf" in line)


def check_pods():
    """What a DaemonSet and a StatefulSet mount is there, and what selects finds something."""
    for document in documents(EXAMPLES / "kubernetes.yaml"):
        if document["kind"] not in ("DaemonSet", "StatefulSet"):
            continue
        spec, name = document["spec"], document["metadata"]["name"]
        pod = spec["template"]["spec"]
        volumes = {v["name"] for v in pod["volumes"]}
        volumes |= {v["metadata"]["name"] for v in spec.get("volumeClaimTemplates", [])}
        mounted = {m["name"] for c in pod["containers"] for m in c["volumeMounts"]}
        if mounted != volumes:
            yield f"{name}: mounted is {sorted(mounted)}, and there is {sorted(volumes)}"
        if spec["selector"]["matchLabels"] != spec["template"]["metadata"]["labels"]:
            yield f"{name} does not select its own pods"
        if document["kind"] == "DaemonSet" and not any(
                v.get("hostPath", {}).get("path") == "/dev/kvm" for v in pod["volumes"]):
            yield f"{name} has no /dev/kvm"


def check_rules():
    if not shutil.which("promtool"):
        print("skipped: there is no promtool (Debian's package prometheus)")
        sys.exit(77)
    faults = [*run(["promtool", "check", "rules", ALERTS]),
              *run(["promtool", "test", "rules", ROOT / "tests" / "fleet_alerts.yaml"])]
    print("\n".join(faults) or "alert rules checked, and when they fire")
    sys.exit(1 if faults else 0)


def check_named():
    text = (ROOT / "docs" / "fleet.md").read_text()
    for path in (DASHBOARD, ALERTS, *EXAMPLES.iterdir()):
        name = str(path.relative_to(ROOT))
        if name not in text:
            yield f"docs/fleet.md does not name {name}"


def main():
    if sys.argv[1] == "--rules":
        check_rules()
    skillvmd = Path(sys.argv[1]).resolve()
    metrics = metrics_of((ROOT / "docs" / "metrics.md").read_text())
    alerts = yaml.safe_load(ALERTS.read_text())
    left_out = [name for name in ("nats-server", "systemd-analyze") if not shutil.which(name)]
    with tempfile.TemporaryDirectory() as folder:
        work = Path(folder)
        faults = [*check_check(metrics), *check_alerts(alerts, metrics),
                  *check_dashboard(json.loads(DASHBOARD.read_text()), metrics),
                  *check_settings(skillvmd, work), *check_pods(), *check_time_to_end(), *check_who_comes(), *check_named()]
        if "nats-server" not in left_out:
            faults += check_servers(work)
        if "systemd-analyze" not in left_out:
            faults += check_units(work)
    print("\n".join(faults) or "dashboard, alerts and examples checked")
    if left_out:
        print(f"skipped: {', '.join(left_out)}")
    sys.exit(1 if faults else 77 if left_out else 0)


main()
