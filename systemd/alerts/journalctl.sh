#!/bin/sh
# What of gatewayd's log is worth waking up for, with nothing but journalctl: states that have no recovery line yet, and events.
# Prints them and exits with 1 when there are any, else with 0. For cron, a timer, or a monitoring agent:
#
#   journalctl.sh [UNIT] [SINCE]        journalctl.sh gatewayd@shop.service '1 hour ago'
set -eu
unit=${1:-gatewayd.service}
since=${2:-1 day ago}

journalctl --unit="$unit" --since="$since" --output=cat --no-pager | awk '
function msg() { return match($0, /"msg":"[^"]*"/) ? substr($0, RSTART + 7, RLENGTH - 8) : "" }
function database() { return match($0, /"database":"[^"]*"/) ? substr($0, RSTART, RLENGTH) : "" }
BEGIN {
    # the line that ends one or several states, and these states
    ends["audit recovered"] = "audit unavailable"
    ends["database reachable"] = "database unreachable"
    ends["policy reloaded"] = "policy reload failed"
    ends["deny webhook delivered again"] = "deny webhook failed"
    ends["approval gate reachable"] = "approval gate unreachable"
    ends["taint check works again"] = "taint check failed; the grant counts as tainted"
    ends["taints readable again"] = "taints unreadable; every grant counts as tainted"
    ends["gateway enforcing"] = "gateway halted|gateway paused"
    ends["link restored"] = "link cut"
    ends["control plane reachable"] = "control plane unreachable"
    ends["status taken again"] = "status refused"
    ends["policy fresh again"] = "policy stale"
    ends["gateway linked"] = "enrolment failed"
    ends["audit push recovered"] = "audit push failed|audit push waiting (control plane keeps answering 429)|control plane audit answer did not verify|control plane holds another event for the new instance too|control plane refused audit events|control plane does not take audit events yet"
    ends["audit pruning recovered"] = "audit pruning failed"
    # any start ends what kept gatewayd from starting, and what the process before was in
    start = "gatewayd started"
    state["audit unavailable"]; state["database unreachable"]; state["policy reload failed"]; state["deny webhook failed"]
    state["needed service unavailable"]; state["configuration invalid"]; state["approval gate unreachable"]
    state["taint check failed; the grant counts as tainted"]; state["taints unreadable; every grant counts as tainted"]
    state["gateway halted"]
    state["gateway paused"]
    state["link cut"]
    state["control plane unreachable"]
    state["status refused"]
    state["policy stale"]
    state["enrolment failed"]
    state["audit push failed"]
    state["audit push waiting (control plane keeps answering 429)"]
    state["control plane audit answer did not verify"]
    state["control plane holds another event for the new instance too"]
    state["control plane refused audit events"]
    state["control plane does not take audit events yet"]
    state["audit pruning failed"]
    # what happened, and is not taken back
    event["audit file does not continue what was signed"]
    event["audit write after execution failed"]; event["unexpected failure"]; event["deny webhook dropped"]
    event["decision failed; the statement was denied"]; event["connection failed"]; event["log lines dropped"]
    event["engine ended by itself"]; event["engine cannot be started"]
    event["grant tainted"]; event["taint cleared"]
    event["bundle rejected"]
    event["trust rejected"]
    event["gateway identity in use elsewhere"]
    event["bundle version accepted by hand"]
    event["public URL not registered"]
    event["audit file forked from what the control plane holds"]
    event["control plane lost acknowledged audit events"]
    event["audit event sent without its details"]
    event["audit events recorded while linked never reached the control plane; local mode does not send them"]
    event["view definitions withheld from the cloud"]
}
{
    m = msg()
    if (m in state) open[m database()] = $0
    else if (m in event) { print; found = 1 }
    else if (m in ends) { n = split(ends[m], begun, "|"); for (i = 1; i <= n; i++) delete open[begun[i] database()] }
    else if (m == start) for (k in open) delete open[k]
}
END {
    for (k in open) { print open[k]; found = 1 }
    exit found
}'
