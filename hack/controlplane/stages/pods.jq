# What happens next to a pod on an imitated node. `next` is the policy: the first line that holds wins.
# Everything is read from the pod itself, because that is all a stage can see.

def sim($name): .metadata.annotations["sim.vlm.dev/" + $name];

# "1m30s" as 90
def seconds:
  {"ms": 0.001, "s": 1, "m": 60, "h": 3600} as $unit
  | [match("([0-9.]+)(ms|s|m|h)"; "g") | (.captures[0].string | tonumber) * $unit[.captures[1].string]] | add // 0;

# When the pod entered its present state. Kept in a condition, to the millisecond, so that an update of the pod by someone
# else does not start a delay anew.
def clock: ([.status.conditions[]? | select(.type == "sim.vlm.dev/Clock") | .message | tonumber / 1000] | first) // now;
def in_ms: if . > 0 then "\(. * 1000 | ceil)ms" else "0s" end;
def after($name; $default): clock + (sim($name) // $default | seconds) - now | in_ms;

# Containers end when they like, within the grace period.
def grace: .metadata.deletionGracePeriodSeconds // 30;
def end_due: clock + ([(sim("end-after") // "0s" | seconds), grace] | min) - now | in_ms;

def condition($type): any(.status.conditions[]?; .type == $type and .status == "True");
def gates_open: . as $pod | all(.spec.readinessGates[]?; .conditionType as $type | $pod | condition($type));

# With fault-after the fault strikes only once the pod has been ready for so long.
def fault: if sim("fault-after") and (condition("Ready") | not) then "none" else sim("fault") // "none" end;

def target: sim("container") // .spec.containers[0].name;
def target_status: target as $name | first((.status.initContainerStatuses[]?, .status.containerStatuses[]?) | select(.name == $name));
def restarts_wanted: (sim("restarts") // "1" | tonumber) - (target_status.restartCount // 0) > 0;
def crash_wanted: fault == "exit" or fault == "oom" or (fault == "restart" and restarts_wanted);
def waits_for($reason): any(.status.initContainerStatuses[]?, .status.containerStatuses[]?; .state.waiting.reason == $reason);
def pull_wanted: target as $name
  | fault == "image-pull" and (condition("Ready") | not)
    and (condition("Initialized") or any(.spec.initContainers[]?; .name == $name));
def held_up: .spec.initContainers or sim("start-after") or fault == "image-pull";
def completes: sim("complete-after") != null or any(.metadata.ownerReferences[]?; .kind == "Job");

def next:
  if .metadata.deletionTimestamp and grace == 0 then "nothing"
  elif .metadata.deletionTimestamp and sim("end-after") and (condition("sim.vlm.dev/Ending") | not) then "begin-end"
  elif .metadata.deletionTimestamp then "end"
  elif .status.phase == "Succeeded" or .status.phase == "Failed" then "nothing"
  elif fault == "evict" then "evict"
  elif .status.podIP == null then (if held_up then "create" else "create-running" end)
  elif pull_wanted then (if waits_for("ImagePullBackOff") then "nothing" else "fail-pull" end)
  elif crash_wanted and target_status.state.running then "crash"
  elif crash_wanted and waits_for("CrashLoopBackOff") then "crash-again"
  elif waits_for("CrashLoopBackOff") then "restart"
  elif condition("Initialized") | not then "initialize"
  elif .status.phase == "Pending" then "start"
  elif fault == "never-ready" then (if condition("ContainersReady") then "lose-readiness" else "nothing" end)
  elif condition("ContainersReady") | not then "become-ready"
  elif condition("Ready") != gates_open then "follow-gates"
  elif completes then "complete"
  else "nothing" end;
