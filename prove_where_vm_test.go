//go:build vm

package rota

import (
	"encoding/json"
	"strconv"
	"strings"
	"testing"
)

// whereLoads makes calls whose makers are known: a shell that truncates a file over
// and over, in a cgroup and on one CPU; twenty programs that make a folder each; and a
// ping over a pair of veth, whose answers are sent in a soft interrupt.
const whereLoads = `
report() { name=$1; shift; echo "report $name $("$@" --json | tr '\n' ' ')"; }
refused() { name=$1; shift; echo "$name: $("$@" 2>&1)"; }
mkdir -p /sys/fs/cgroup/makers
taskset 2 sh -c 'trap "(while :; do sleep 1; done) & echo \$! > /tmp/child" USR1; echo $$ > /sys/fs/cgroup/makers/cgroup.procs; while :; do : > /tmp/x; sleep 0.02; done' & maker=$!; echo "maker $maker"
report maker rota where do_truncate --for 1s
report made rota where vfs_mkdir --for 4s & where=$!
sleep 2.5; for i in $(seq 20); do mkdir /tmp/d$i; done; wait $where
(rota where hrtimer_interrupt --for 100s; echo "interrupted: $?") & sleep 3; kill -INT $(pidof rota); wait $!
refused unknown rota where vfs_mkdri
refused module rota where gtp_dev_xmit --module gtp
refused notrace rota where ktime_get_mono_fast_ns
cut -d' ' -f3 /proc/kallsyms > /tmp/symbols
for clone in $(grep '^[a-z][a-z_0-9]*\.isra\.0$' /sys/kernel/tracing/available_filter_functions | head -30); do
	grep -qxF ${clone%.isra.0} /tmp/symbols || break
done
echo "clone $clone"; refused clone rota where ${clone%.isra.0}; report cloned rota where $clone --for 100ms
/bin/ip netns add far
/bin/ip link add near0 address 02:00:00:00:00:01 type veth peer name far0 address 02:00:00:00:00:02 netns far
/bin/ip addr add 10.9.0.1/24 dev near0; /bin/ip link set near0 addrgenmode none up
/bin/ip -n far addr add 10.9.0.2/24 dev far0; /bin/ip -n far link set far0 addrgenmode none up
# So that nobody probes a neighbour from a timer, which is a soft interrupt too.
/bin/ip neigh add 10.9.0.2 lladdr 02:00:00:00:00:02 dev near0; /bin/ip -n far neigh add 10.9.0.1 lladdr 02:00:00:00:00:01 dev far0
ping -i 0.05 10.9.0.2 > /dev/null & pinger=$!; echo "pinger $pinger"
sleep 1.2; report packets rota where veth_xmit --module veth --for 1s
kill $pinger
# Nobody answers the first one, so that only a task sends packets until the second one begins.
/bin/ip neigh add 10.9.0.9 lladdr 02:00:00:00:00:09 dev near0; ping -i 0.05 10.9.0.9 > /dev/null & silent=$!
sleep 1.2; report later rota where veth_xmit --module veth --for 7s & where=$!
sleep 4; ping -i 0.05 10.9.0.2 > /dev/null & pinger=$!; wait $where; kill $silent $pinger
printf 'classes:\n  - name: voice # ours\n' > /rota.yaml
`

// whereRota has a daemon that takes up the rule.
const whereRota = `
rota run --config /rota.yaml & daemon=$!
for try in $(seq 100); do sleep 0.1; grep -q enabled /sys/kernel/sched_ext/state && break; done
sleep 0.3
`

const whereAdd = `
rota where do_truncate --for 1s --add-to voice --config /rota.yaml; echo "added: $?"
rota config check /rota.yaml; cat /rota.yaml
`

// whereRule has rules by function: one is executed, one is not there.
const whereRule = `
cat > /rota.yaml <<'END'
classes: [{name: voice, tier: priority}]
rules:
  - match: {kernelFunction: "vmlinux:do_truncate"}
    class: voice
  - match: {kernelFunction: do_trunkate}
    class: default
END
rota reload
for try in $(seq 20); do rota explain $maker | grep -q voice && break; sleep 0.5; done
for try in $(seq 20); do rota status | grep -q 'did you mean' && break; sleep 0.5; done
report executes rota explain $maker
kill -USR1 $maker; sleep 1
report child rota explain $(cat /tmp/child); kill $(cat /tmp/child)
report watched rota status
# Who has not been seen for a minute is forgotten: it was seen since.
kill -STOP $maker; sleep 55; kill -CONT $maker; sleep 10; report still rota explain $maker
`

// executed is what where answers.
type executed struct {
	Method    string
	Count     uint64
	Lost      uint64
	Blind     bool
	Executors []executedBy
}

type executedBy struct {
	Context, Interrupt, Comm, Cgroup, Exe string
	Number                                *int
	TID, TGID                             int
	Count                                 uint64
	CPUs                                  []struct{ CPU int }
}

// TestWhere asks on the oldest kernel that it is for, and on one with rota, who
// executes functions whose callers are known.
func TestWhere(t *testing.T) {
	t.Parallel()
	for kernel, more := range map[string]string{"6.1": whereAdd, "6.18": whereRota + whereAdd + whereRule + "kill $daemon; wait $daemon"} {
		t.Run(kernel, func(t *testing.T) {
			t.Parallel()
			out := strings.ReplaceAll(lab(t, "exec", coarse, "--kernel", kernel, "--module", "veth", "--tool", "ip", "--file", "bin/rota=/bin/rota", "--", whereLoads+more), "\r", "")
			for _, words := range []string{
				`unknown: rota where: function "vfs_mkdri": is unknown: did you mean vfs_mkdir or `,
				`module: rota where: module "gtp": is not loaded: load it with: modprobe gtp`,
				`notrace: rota where: function "ktime_get_mono_fast_ns": can't be hooked (notrace: not in /sys/kernel/tracing/available_filter_functions): `,
				"clone: rota where: function \"" + strings.TrimSuffix(said(out, "clone"), ".isra.0") + "\": the compiler has made " + said(out, "clone") + " of it: name that",
				"hrtimer_interrupt (kernel) by fentry in ", "hardirq of no driver (timer, other CPUs)", "interrupted: 0", "ended early: interrupted",
				"added: 0", "/rota.yaml: good: 2 classes, 1 rule",
				"  - name: voice # ours\nrules:\n  - match: {cgroup: \"/makers\"}\n    class: voice\n",
			} {
				if !strings.Contains(out, words) {
					t.Errorf("no %q", words)
				}
			}
			state := "written to /rota.yaml: no daemon answers: in force at the next: rota run"
			if kernel == "6.18" {
				state = "written to /rota.yaml: in force"
				checkRule(t, out)
			}
			if !strings.Contains(out, state) {
				t.Errorf("no %q", state)
			}
			checkExecuted(t, out)
		})
	}
}

// checkRule holds the class of the task that executes the function of a rule.
func checkRule(t *testing.T, out string) {
	t.Helper()
	var task, child, still struct {
		Threads []struct{ Class, Rule string }
	}
	var status struct {
		Functions []struct {
			Name, Note string
			Tasks      int
		}
	}
	for _, m := range named.FindAllStringSubmatch(out, -1) {
		into, wanted := map[string]any{"executes": &task, "child": &child, "still": &still, "watched": &status}[m[1]]
		if !wanted {
			continue
		}
		if err := json.Unmarshal([]byte(m[2]), into); err != nil {
			t.Fatalf("%v in %s", err, m[0])
		}
	}
	if len(task.Threads) != 1 || task.Threads[0].Class != "voice" || task.Threads[0].Rule != "/rota.yaml:3" {
		t.Errorf("who executes the function of a rule: %+v", task.Threads)
	}
	if len(still.Threads) != 1 || still.Threads[0].Class != "voice" {
		t.Errorf("the same a minute later: %+v", still.Threads)
	}
	if len(child.Threads) != 1 || child.Threads[0].Class != "default" {
		t.Errorf("its child, which does not: %+v", child.Threads)
	}
	functions := status.Functions
	if len(functions) != 2 || functions[0].Name != "vmlinux:do_truncate" || functions[0].Tasks < 1 || functions[0].Note != "" ||
		functions[1].Tasks != 0 || !strings.Contains(functions[1].Note, "do_truncate") {
		t.Errorf("functions of rules: %+v", functions)
	}
}

// said is the word behind a name at the beginning of a line.
func said(out, name string) string {
	for line := range strings.Lines(out) {
		if rest, ok := strings.CutPrefix(line, name+" "); ok {
			return strings.TrimSpace(rest)
		}
	}
	return "?"
}

// checkExecuted holds what was seen against what was done.
func checkExecuted(t *testing.T, out string) {
	t.Helper()
	found := map[string]executed{}
	before, _, _ := strings.Cut(out, "report executes ")
	for _, m := range named.FindAllStringSubmatch(before, -1) {
		var e executed
		if err := json.Unmarshal([]byte(m[2]), &e); err != nil {
			t.Fatalf("%v in %s", err, m[0])
		}
		found[m[1]] = e
		if e.Lost != 0 || e.Blind || e.Method == "" {
			t.Errorf("%s: %+v", m[1], e)
		}
	}
	if len(found) != 5 {
		t.Fatalf("%d reports, want 5", len(found))
	}
	maker := found["maker"].Executors
	if found["maker"].Count < 20 || len(maker) != 1 || strconv.Itoa(maker[0].TID) != said(out, "maker") || maker[0].Comm != "sh" || maker[0].Cgroup != "/makers" ||
		maker[0].Exe == "" || maker[0].Context != "task" || len(maker[0].CPUs) != 1 || maker[0].CPUs[0].CPU != 1 {
		t.Errorf("who truncates a file: %+v", found["maker"])
	}
	if made := found["made"]; made.Count != 20 || len(made.Executors) != 20 || made.Executors[0].Comm != "mkdir" {
		t.Errorf("who makes twenty folders: %+v", made)
	}
	pinger, answers := uint64(0), uint64(0)
	for _, e := range found["packets"].Executors {
		switch {
		case e.Context == "task" && e.Comm == "ping" && strconv.Itoa(e.TGID) == said(out, "pinger"):
			pinger += e.Count
		case e.Context == "softirq" && e.Interrupt == "NET_RX" && e.TID == 0:
			answers += e.Count
		}
	}
	checkLater(t, found["later"])
	if all := found["packets"].Count; pinger < 10 || answers < 10 || all > pinger+answers+20 {
		t.Errorf("%d packets, %d by the pinger, %d in its soft interrupts: %+v", all, pinger, answers, found["packets"])
	}
}

// checkLater: interrupts come after seconds of calls by tasks alone. Of the first ones nobody
// noted which they are; of the others it is known.
func checkLater(t *testing.T, later executed) {
	t.Helper()
	unknown, known := uint64(0), uint64(0)
	for _, e := range later.Executors {
		switch {
		case e.Context == "softirq" && e.Number == nil:
			unknown += e.Count
		case e.Context == "softirq" && e.Interrupt == "NET_RX":
			known += e.Count
		}
	}
	if unknown < 1 || unknown > 25 || known < 10 {
		t.Errorf("%d packets in soft interrupts that are not known, %d in NET_RX: %+v", unknown, known, later)
	}
}
