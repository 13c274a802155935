package daemon

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/sys/unix"

	"rota/internal/config"
)

// slow says how fast the first two CPUs of the fake machine run, in kHz of 2000000.
func slow(t *testing.T, d *Daemon, khz string) {
	t.Helper()
	dir := filepath.Join(filepath.Dir(d.Source.Path), "sys/devices/system/cpu/cpufreq/policy0")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{"affected_cpus": "0 1", "cpuinfo_max_freq": "2000000", "scaling_cur_freq": khz} {
		inOnePiece(t, filepath.Join(dir, name), text+"\n")
	}
}

// inOnePiece writes a file that somebody reads all the time.
func inOnePiece(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path+"~", []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(path+"~", path); err != nil {
		t.Fatal(err)
	}
}

func TestSpeeds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake()
		d, _ := newDaemon(t, "scheduler: {frequencyFairness: on}\nclasses: [{name: a, memoryBound: 0.5}]\n", func() (Scheduler, error) { return f, nil })
		stop := running(t, d)
		synctest.Wait()
		if got := d.Status().Frequency; got.Mode != "on" || !strings.Contains(got.Note, "no frequencies") || len(f.speeds) != 0 {
			t.Errorf("without frequencies: %+v, told %v", got, f.speeds)
		}
		slow(t, d, "1000000")
		time.Sleep(speedRetry + speedEvery)
		slow(t, d, "500000")
		time.Sleep(3 * speedEvery)
		if want := [][]uint32{{512, 512}, {256, 256}}; !reflect.DeepEqual(f.speeds, want) {
			t.Errorf("told %v, want %v", f.speeds, want)
		}
		if got := d.Status().Frequency; got.Mode != "on" || got.Note != "" {
			t.Errorf("%+v", got)
		}
		if got := d.Status().Classes[1].MemoryBoundPercent; got != 50 {
			t.Errorf("memory bound %v %%", got)
		}
		rewrite(t, d, "{}")
		if _, err := d.Reload(t.Context()); err != nil {
			t.Fatal(err)
		}
		time.Sleep(3 * speedEvery)
		if last := f.speeds[len(f.speeds)-1]; len(last) != 0 || d.Status().Frequency.Mode != "off" {
			t.Errorf("switched off: told %v, %+v", last, d.Status().Frequency)
		}
		stop()
	})
}

// TestSpeedsAreReadSoonAgain: a reading that had to wait costs nothing, one that took long does.
func TestSpeedsAreReadSoonAgain(t *testing.T) {
	f := newFake()
	d, _ := newDaemon(t, "", func() (Scheduler, error) { return f, nil })
	p, err := newPlan(&config.Config{Frequency: config.FrequencyOn})
	if err != nil {
		t.Fatal(err)
	}
	s := d.newSession(f, p)
	slow(t, d, "1000000")
	file := filepath.Join(filepath.Dir(d.Source.Path), "sys/devices/system/cpu/cpufreq/policy0/scaling_cur_freq")
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	if err := unix.Mkfifo(file, 0o600); err != nil {
		t.Fatal(err)
	}
	go func() {
		time.Sleep(50 * time.Millisecond)
		_ = os.WriteFile(file, []byte("500000\n"), 0)
	}()
	if pause := d.readSpeeds(s); pause != speedEvery || len(f.speeds) != 1 {
		t.Errorf("next in %v, told %v", pause, f.speeds)
	}
	if pause := speedPause(20 * time.Millisecond); pause != 2*time.Second {
		t.Errorf("after 20 ms of CPU time: %v", pause)
	}
}
