package level

import (
	"runtime"
	"testing"
)

func TestLevel(t *testing.T) {
	done := make(chan error)
	go func() {
		runtime.LockOSThread() // and not unlocked: the thread ends with its nice value
		before, err := Mine()
		if err == nil {
			before.Nice++
			err = before.Set()
		}
		after, err2 := Mine()
		if err == nil && err2 == nil && after != before {
			t.Errorf("level %+v, want %+v", after, before)
		}
		if err2 != nil {
			err = err2
		}
		done <- err
	}()
	if err := <-done; err != nil {
		t.Error(err)
	}
	if cpu := int(CPU()); cpu > 4096 {
		t.Errorf("CPU %d", cpu)
	}
	for policy, want := range map[uint32]string{0: "SCHED_OTHER", 7: "SCHED_EXT", 99: "policy 99"} {
		if got := (Level{Policy: policy}).Name(); got != want {
			t.Errorf("%d: %s", policy, got)
		}
	}
}
