package output

import (
	"slices"
	"strings"
	"testing"
)

const waitsTrace = `# tracer: nop
#
# entries-in-buffer/entries-written: 9/9   #P:4
#
#           TASK-PID     CPU#  |||||  TIMESTAMP  FUNCTION
     zygote-171     [002] dN.4.     3.100000: sched_wakeup_new: comm=app-main pid=200 prio=120 target_cpu=002
     bg-hog-180     [002] d..2.     3.100012: sched_switch: prev_comm=bg-hog prev_pid=180 prev_prio=120 prev_state=R ==> next_comm=app-main next_pid=200 next_prio=120
     bg-hog-181     [001] dN.4.     3.100020: sched_wakeup: comm=app-main pid=200 prio=120 target_cpu=002
   app-main-200     [002] d..2.     3.104000: sched_switch: prev_comm=app-main prev_pid=200 prev_prio=120 prev_state=R+ ==> next_comm=bg-hog next_pid=180 next_prio=120
     bg-hog-180     [002] d..2.     3.108000: sched_switch: prev_comm=bg-hog prev_pid=180 prev_prio=120 prev_state=R ==> next_comm=app-main next_pid=200 next_prio=120
   app-main-200     [002] d..2.     3.109000: sched_switch: prev_comm=app-main prev_pid=200 prev_prio=120 prev_state=S ==> next_comm=a  1.000000: sched_x: next_pid=181 next_prio=120
     bg-hog-181     [001] dN.4.     3.200000: sched_wakeup: comm=bg-hog pid=180 prio=120 target_cpu=002
     bg-hog-181     [001] dN.4.     3.200000: sched_wakeup: comm=app-main pid=200 prio=120 target_cpu=002
          <idle>-0       [000] d..2.     3.200003: sched_switch: prev_comm=swapper/0 prev_pid=0 prev_prio=120 prev_state=R ==> next_comm=app-main next_pid=200 next_prio=120
`

func isApp(comm string) bool { return strings.HasPrefix(comm, "app-") }

func TestWaits(t *testing.T) {
	got, err := Waits(strings.NewReader(waitsTrace), isApp)
	if err != nil || !slices.Equal(got, Samples{12, 4000, 3}) {
		t.Errorf("%v, error %v", got, err)
	}
	for name, bad := range map[string]string{
		"nothing":   "",
		"overrun":   strings.Replace(waitsTrace, "9/9", "9/12", 1),
		"lost":      waitsTrace + "CPU:1 [LOST 12 EVENTS]\n",
		"half":      waitsTrace + "  x-1 [000] d..2.  4.000000: sched_switch: prev_comm=x\n",
		"no pid":    waitsTrace + "  x-1 [000] d..2.  4.000000: sched_wakeup: comm=x\n",
		"long line": waitsTrace + strings.Repeat("x", maxTraceLine+1),
	} {
		if us, err := Waits(strings.NewReader(bad), isApp); err == nil {
			t.Errorf("%s: no error, %v", name, us)
		}
	}
	if _, err := Waits(strings.NewReader(waitsTrace), func(string) bool { return false }); err == nil {
		t.Error("nobody is wanted, and no error")
	}
}

func FuzzWaits(f *testing.F) {
	f.Add(waitsTrace)
	f.Fuzz(func(t *testing.T, text string) {
		us, _ := Waits(strings.NewReader(text), isApp)
		if us.Min() < 0 {
			t.Errorf("a wait of %v us", us.Min())
		}
	})
}
