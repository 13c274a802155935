//go:build vm

package rota

import (
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// hogs begins loops under a name of their own, bound to the CPUs of a mask, with a nice value if one is
// given, and says how much CPU time one had of a time, in percent of a CPU.
const hogs = `
hog() { taskset $1 ${3:+nice -n $3} sh -c "printf $2 > /proc/self/comm; while :; do :; done" & last=$!; all="$all $last"; }
ticks() { awk '{print $14 + $15}' /proc/$1/stat; }
part() {
	before=$(ticks $2); sleep $3
	echo "$1 $((($(ticks $2) - before) / $3))"
}
`

const capConfig = `classes:
  - {name: scarce, tier: priority, cap: 10%}
  - {name: plenty, tier: priority}
rules:
  - {match: {comm: scarce}, class: scarce}
  - {match: {comm: plenty}, class: plenty}
`

const capped = hogs + `
hog 2 scarce; scarce=$last
sleep 0.3
part alone $scarce 1
hog 2 fair
part beside-one $scarce 2
hog 2 fair
part beside-two $scarce 2
hog f scarce
part roaming $last 1
kill $all
sleep 0.3
hog 2 plenty -20; heavy=$last
hog 2 plenty 19; light=$last
least=100
for n in 1 2 3 4 5 6; do
	sleep 0.4
	kill -STOP $heavy
	before=$(ticks $light); sleep 0.3; had=$((($(ticks $light) - before) * 100 / 30))
	kill -CONT $heavy
	[ $had -lt $least ] && least=$had
done
echo "left-alone $least"
kill $heavy $light
`

// TestCapHolds: a class has its part of a CPU and no more where one task of the fair tier wants that, and
// where two do, also if another class of the tier may have more; and all of it where nobody does, as
// on another CPU that is idle; nor is who waited for long behind one of far more weight forgotten when
// that one stops.
func TestCapHolds(t *testing.T) {
	t.Parallel()
	had := printedCounts(lab(t, "exec", coarse, "--sched", "rota", "--config", configured(t, capConfig), "--tool", "taskset", "--tool", "nice", "--tool", "awk", "--", capped))
	for _, nobody := range []string{"alone", "roaming", "left-alone"} {
		if had[nobody] < 90 {
			t.Errorf("%s: where nobody else wants the CPU it had %d %%, must be at least 90", nobody, had[nobody])
		}
	}
	for _, beside := range []string{"beside-one", "beside-two"} {
		if had[beside] < 5 || had[beside] > 15 {
			t.Errorf("%s: with a cap of 10 %% it had %d %%, must be 5 to 15", beside, had[beside])
		}
	}
}

// domains is for two CPUs, each in a cache domain of its own.
const domains = hogs + `
for n in 1 2 3; do hog 3 plenty; done
sleep 1
set -- $all
for p in $*; do ticks $p > /tmp/$p; done
sleep 1
most=-1
for p in $*; do n=$(($(ticks $p) - $(cat /tmp/$p))); [ $n -gt $most ] && most=$n && alone=$p; done
echo "caches $(cat /sys/devices/system/cpu/cpu*/cache/index3/shared_cpu_list | sort -u | wc -l)"
kill $alone
sleep 0.5
for p in $*; do [ $p = $alone ] || { part other $p 1; }; done
kill $all 2> /dev/null; all=
hog 3 fair; hog 3 fair; hog 3 plenty; one=$last; hog 3 plenty; two=$last
sleep 0.5
one0=$(ticks $one); two0=$(ticks $two); sleep 1
echo "first $(($(ticks $one) - one0))"; echo "second $(($(ticks $two) - two0))"
kill $all 2> /dev/null; all=
sleep 0.5
hog 2 plenty; hog 2 plenty
sleep 0.5
begun=$(cut -d. -f1 /proc/uptime)
echo 0 > /sys/devices/system/cpu/cpu1/online
echo "offline $(cat /sys/devices/system/cpu/cpu1/online)"
echo "took $(($(cut -d. -f1 /proc/uptime) - begun))"
echo "state: $(cat /sys/kernel/sched_ext/state)"
kill $all
`

// TestPriorityFindsAnyCPU: tasks of a priority class that wait in one cache domain have the idle CPU of another, and one
// that runs something less important; and those bound to a CPU that goes offline leave it.
func TestPriorityFindsAnyCPU(t *testing.T) {
	t.Parallel()
	out := lab(t, "exec", coarse, "--cpus", "2", "--sockets", "2", "--sched", "rota", "--config", configured(t, capConfig), "--tool", "taskset", "--tool", "awk", "--", domains)
	had := printedCounts(out)
	if had["caches"] != 2 {
		t.Fatalf("%d cache domains, must be 2", had["caches"])
	}
	others := regexp.MustCompile(`(?m)^other (\d+)`).FindAllStringSubmatch(out, -1)
	if len(others) != 2 {
		t.Fatalf("%d tasks were left, must be 2", len(others))
	}
	for _, m := range others {
		if percent, _ := strconv.Atoi(m[1]); percent < 85 {
			t.Errorf("two tasks on two CPUs: one had %d %% of a CPU, must be at least 85", percent)
		}
	}
	if had["first"] < 80 || had["second"] < 80 {
		t.Errorf("beside fair tasks on two CPUs two of a priority class had %d and %d %%, must be at least 80", had["first"], had["second"])
	}
	if took, ended := had["took"]; !ended || took > 5 || had["offline"] != 0 || !strings.Contains(out, "state: enabled") {
		t.Errorf("a CPU went offline in %d s (%v), must be 5 at most, and rota must be in charge", took, ended)
	}
}

const abusedConfig = `classes:
  - {name: high, tier: priority}
  - {name: low, tier: background}
  - {name: lower, tier: background}
rules:
  - {match: {comm: inv-high}, class: high}
  - {match: {comm: inv-low}, class: low}
  - {match: {comm: inv-lower}, class: lower}
  - {match: {exe: /no/such/program}, class: low}
`

// abused is what a user may try who is not root, and what the daemon may miss.
const abused = hogs + `
cd /sys/fs/cgroup
echo +cpu > cgroup.subtree_control
mkdir outer; echo "20000 100000" > outer/cpu.max; at=outer
for level in $(seq 17); do
	echo +cpu > $at/cgroup.subtree_control
	at=$at/in; mkdir $at; echo "100000000 1000000" > $at/cpu.max
done
hog 2 nested; echo $last > $at/cgroup.procs
part nested $last 2
kill $last

mkfifo /ask /answer
sh -c 'printf inv-low > /proc/self/comm; while read x; do
	printf inv-lower > /proc/self/comm; until [ -e /asked ]; do :; done; echo done; done' < /ask > /answer & server=$!
sh -c 'printf inv-high > /proc/self/comm; exec 3>/ask 4</answer; sleep 0.5; echo x >&3; read y <&4' & client=$!
sleep 0.2
for n in 1 2 3 4; do hog f fair; done
sleep 4
rota status --json | tr -d ' \n' | sed 's/.*"spent":\([0-9]*\).*/spent \1\n/'
touch /asked; kill $all; wait $client; kill $server

field() { sed "s/.*\"$1\":\([0-9]*\).*/\1/" /tmp/status; }
renumber inv-high & holder=$!
sleep 3
rota status --json | tr -d ' \n' > /tmp/status
echo "futex $(field futex)"
echo "active $(($(field futex) + $(field locks) + $(field wakeups) + $(field binder) - $(field ended)))"
kill $holder

sh -c '(printf zed > /proc/self/comm) & exec sleep 100' & parent=$!
sleep 0.3
echo "zombies $(grep -l 'State:.Z' /proc/[0-9]*/status | wc -l)"
sed -i 's/inv-high}/zed}/' /etc/rota.yaml
rota reload
sleep 1
rota status --json | tr -d ' \n' > /tmp/status
sed 's/.*"name":"high"[^}]*"tasks":\([0-9]*\).*/high \1\n/' /tmp/status
echo "ended $(field ended)"
kill $parent

kill -STOP $(pidof rota)
sh -c 'n=0; while [ $n -lt 9000 ]; do n=$((n+1)); printf n$n > /proc/self/comm; done'
echo S > /proc/sysrq-trigger
sleep 0.5
echo "now $(cat /sys/kernel/sched_ext/state)"
kill -CONT $(pidof rota)
for n in $(seq 80); do sleep 0.1; grep -q enabled /sys/kernel/sched_ext/state && break; done
echo "then $(cat /sys/kernel/sched_ext/state)"
`

// TestAbuse: cgroups of one's own below a limit don't lift it, however many; a boost ends after a second of CPU time
// also for who takes another name meanwhile, and with the wait for who takes another tid; who has ended but was not waited for gets no class; and the
// daemon loads its scheduler again although it missed the word of its end.
func TestAbuse(t *testing.T) {
	t.Parallel()
	out := strings.ReplaceAll(lab(t, "exec", coarse, "--kernel", "7.2", "--sched", "rota", "--config", configured(t, abusedConfig), "--tool", "taskset", "--tool", "awk", "--file", "bin/load/renumber=/bin/renumber", "--", abused), "\r", "")
	had := printedCounts(out)
	if n := had["nested"]; n < 10 || n > 25 {
		t.Errorf("below a limit of 20 %% of a CPU a task had %d %%, must be 10 to 25", n)
	}
	if had["spent"] != 1 {
		t.Errorf("%d boosts were used up, must be 1", had["spent"])
	}
	if active, counted := had["active"]; had["futex"] == 0 || !counted || active != 0 {
		t.Errorf("%d boosts for owners of futexes, %d boosts last (%v), must be some and 0", had["futex"], active, counted)
	}
	tasks, counted := had["high"]
	if had["zombies"] != 1 || !counted || tasks != 0 {
		t.Errorf("%d tasks have ended and were not waited for, their class has %d (%v), must be 1 and 0", had["zombies"], tasks, counted)
	}
	if ended, counted := had["ended"]; !counted || ended > 100 {
		t.Errorf("%d boosts have ended (%v), must be some", ended, counted)
	}
	for _, words := range []string{"now disabled\n", "then enabled\n"} {
		if !strings.Contains(out, words) {
			t.Errorf("no %q", words)
		}
	}
}
