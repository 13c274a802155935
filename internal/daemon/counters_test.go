package daemon

import (
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"rota/internal/counters"
	"rota/internal/sched"
)

// TestCounters: opened when frequencies count, anew when CPUs come or the configuration
// changes, and gone with it; frequencies that are counted are not read.
func TestCounters(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake()
		d, _ := newDaemon(t, "scheduler: {frequencyFairness: frequency, counters: r20cb, accessLatency: 80ns}\n", func() (Scheduler, error) { return f, nil })
		var asked []string
		d.OpenCounters = func(event string, latency time.Duration, cpus []int) (*counters.Set, error) {
			asked = append(asked, fmt.Sprint(event, " ", latency, " ", cpus))
			set := &counters.Set{Source: counters.Source{Name: "misses", Latency: latency}, Waits: map[int]int{}, Cycles: map[int]int{}}
			for _, cpu := range cpus {
				set.Waits[cpu] = 1<<20 + cpu
				if event == "" {
					set.Cycles[cpu] = 1<<21 + cpu
				}
			}
			return set, nil
		}
		online(t, d, "0-1")
		slow(t, d, "1000000")
		stop := running(t, d)
		synctest.Wait()
		if got := d.Status().Frequency; got.Counters != "misses" || got.CountersNote != "" || len(f.speeds) != 1 {
			t.Errorf("%+v, speeds %v", got, f.speeds)
		}
		f.mu.Lock()
		f.came++ // off and on again between two looks
		f.mu.Unlock()
		time.Sleep(2 * lookEvery)
		online(t, d, "0")
		time.Sleep(2 * lookEvery)
		rewrite(t, d, "scheduler: {frequencyFairness: on}\n")
		reload(t, d)
		slow(t, d, "500000")
		time.Sleep(2 * lookEvery)
		// Until its counters were open, frequencies were read; then no more.
		read := len(f.speeds)
		slow(t, d, "250000")
		time.Sleep(2 * lookEvery)
		if len(f.speeds) != read {
			t.Errorf("counted, but told %v", f.speeds)
		}
		rewrite(t, d, "scheduler: {frequencyFairness: on, counters: off}\n")
		reload(t, d)
		time.Sleep(3 * lookEvery)
		if last := f.speeds[len(f.speeds)-1]; !reflect.DeepEqual(last, []uint32{128, 128}) {
			t.Errorf("nothing counts any more, told %v", f.speeds)
		}
		if got := d.Status().Frequency; got.Counters != "" || got.CountersNote != "" {
			t.Errorf("switched off: %+v", got)
		}
		stop()
		if want := []string{"r20cb 80ns [0 1]", "r20cb 80ns [0 1]", "r20cb 80ns [0]", " 0s [0]"}; !reflect.DeepEqual(asked, want) {
			t.Errorf("opened %q, want %q", asked, want)
		}
		want := []sched.Counters{
			{Waits: map[int]int{0: 1 << 20, 1: 1<<20 + 1}, Cycles: map[int]int{}, Latency: 80 * time.Nanosecond},
			{Waits: map[int]int{0: 1 << 20, 1: 1<<20 + 1}, Cycles: map[int]int{}, Latency: 80 * time.Nanosecond},
			{Waits: map[int]int{0: 1 << 20}, Cycles: map[int]int{}, Latency: 80 * time.Nanosecond},
			{Waits: map[int]int{0: 1 << 20}, Cycles: map[int]int{0: 1 << 21}, FullKHz: map[int]uint64{0: 2000000, 1: 2000000}},
			{},
		}
		if !reflect.DeepEqual(f.counters, want) {
			t.Errorf("told %+v\nwant %+v", f.counters, want)
		}
	})
}

func reload(t *testing.T, d *Daemon) {
	t.Helper()
	if _, err := d.Reload(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// TestNoCounters: said in words, and tried again; frequencies are read meanwhile.
func TestNoCounters(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake()
		d, _ := newDaemon(t, "scheduler: {frequencyFairness: on}\n", func() (Scheduler, error) { return f, nil })
		tries, fault := 0, counters.ErrNone
		d.OpenCounters = func(string, time.Duration, []int) (*counters.Set, error) {
			if tries++; fault != nil {
				return nil, fault
			}
			return &counters.Set{Source: counters.Source{Name: "stalls"}, Waits: map[int]int{0: 1 << 20}, Cycles: map[int]int{0: 1 << 21, 1: 1 << 22}}, nil
		}
		online(t, d, "0-1")
		slow(t, d, "1000000")
		stop := running(t, d)
		time.Sleep(speedRetry + speedEvery)
		got := d.Status().Frequency
		if got.Counters != "" || !strings.Contains(got.CountersNote, counters.ErrNone.Error()) || tries != 2 || len(f.speeds) != 1 {
			t.Errorf("%+v, %d tries, speeds %v", got, tries, f.speeds)
		}
		f.mu.Lock()
		f.counterFault = errors.New("refused")
		f.mu.Unlock()
		fault = nil
		time.Sleep(speedRetry)
		if got := d.Status().Frequency; got.CountersNote != "refused" || tries != 3 {
			t.Errorf("the scheduler refuses them: %+v, %d tries", got, tries)
		}
		slow(t, d, "500000")
		time.Sleep(2 * speedEvery)
		if last := f.speeds[len(f.speeds)-1]; !reflect.DeepEqual(last, []uint32{256, 256}) {
			t.Errorf("nothing counts, told %v", f.speeds)
		}
		online(t, d, "0-x")
		time.Sleep(speedRetry)
		if got := d.Status().Frequency; !strings.Contains(got.CountersNote, "0-x") {
			t.Errorf("CPUs that can't be read: %+v", got)
		}
		stop()
	})
}

// TestTops: where a machine comes to say its top frequencies later, cycles count from then on.
func TestTops(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake()
		d, _ := newDaemon(t, "scheduler: {frequencyFairness: on}\n", func() (Scheduler, error) { return f, nil })
		opened := 0
		d.OpenCounters = func(string, time.Duration, []int) (*counters.Set, error) {
			opened++
			return &counters.Set{Source: counters.Source{Name: "stalls"}, Cycles: map[int]int{0: 1 << 20, 1: 1 << 21}}, nil
		}
		online(t, d, "0-1")
		stop := running(t, d)
		time.Sleep(lookEvery + speedRetry/2)
		slow(t, d, "1000000")
		time.Sleep(2 * speedRetry)
		if note := d.Status().Frequency.Note; note != "" {
			t.Errorf("counted, and yet: %s", note)
		}
		if want := map[int]uint64{0: 2000000, 1: 2000000}; opened != 1 || len(f.counters) != 2 || len(f.counters[0].FullKHz) != 0 || !reflect.DeepEqual(f.counters[1].FullKHz, want) {
			t.Errorf("opened %d times, told %+v", opened, f.counters)
		}
		stop()
	})
}

// TestSomeCyclesCounted: where one CPU has no cycles counted cpufreq speaks for all.
func TestSomeCyclesCounted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake()
		d, _ := newDaemon(t, "scheduler: {frequencyFairness: on}\n", func() (Scheduler, error) { return f, nil })
		d.OpenCounters = func(string, time.Duration, []int) (*counters.Set, error) {
			return &counters.Set{Source: counters.Source{Name: "stalls"}, Waits: map[int]int{0: 1 << 20}, Cycles: map[int]int{0: 1 << 21}}, nil
		}
		online(t, d, "0-1")
		slow(t, d, "1000000")
		stop := running(t, d)
		time.Sleep(2 * speedRetry)
		if len(f.counters) != 1 || len(f.counters[0].FullKHz) != 0 || len(f.speeds) != 1 {
			t.Errorf("told %+v, speeds %v", f.counters, f.speeds)
		}
		// What changes is seen as soon as elsewhere.
		f.mu.Lock()
		f.came++
		f.mu.Unlock()
		time.Sleep(2 * lookEvery)
		rewrite(t, d, "scheduler: {frequencyFairness: on, counters: off}\n")
		reload(t, d)
		time.Sleep(2 * lookEvery)
		if len(f.counters) != 3 || len(f.counters[1].Waits) != 1 || len(f.counters[2].Waits) != 0 {
			t.Errorf("told %+v", f.counters)
		}
		stop()
	})
}
