package cpufreq

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// machine is a folder as the kernel's, with two policies of which one is offline.
func machine(t *testing.T, change map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	files := map[string]string{
		"policy0/affected_cpus": "1 0\n", "policy0/cpuinfo_max_freq": "2530000\n", "policy0/cpuinfo_min_freq": "930000\n",
		"policy0/scaling_min_freq": "1200000\n", "policy0/scaling_max_freq": "2270000\n", "policy0/scaling_cur_freq": "2270000\n",
		"policy2/affected_cpus": "\n", "policy3/related_cpus": "3\n",
	}
	for name, text := range change {
		files[name] = text
	}
	for name, text := range files {
		path := filepath.Join(dir, name)
		if text == "" {
			continue // not there
		}
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(text), 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func mustOpen(t *testing.T, dir string) *Policy {
	t.Helper()
	p, err := Open(dir, 1)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Close)
	return p
}

// limits is what is set.
func limits(t *testing.T, dir string) string {
	t.Helper()
	low, err := os.ReadFile(filepath.Join(dir, "policy0", minFile))
	high, fault := os.ReadFile(filepath.Join(dir, "policy0", maxFile))
	if err := errors.Join(err, fault); err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(low)) + ".." + strings.TrimSpace(string(high))
}

// At no moment is the lower limit above the higher one, and at the end both are as before.
func TestHoldAndRestore(t *testing.T) {
	dir := machine(t, nil)
	p := mustOpen(t, dir)
	if !slices.Equal(p.CPUs, []int{0, 1}) || p.Name != "policy0" || p.Top != 2530000 || p.Bottom != 930000 {
		t.Errorf("%+v", p)
	}
	var writes []string
	p.write = func(path, text string) error {
		err := write(path, text)
		writes = append(writes, filepath.Base(path)+" "+strings.TrimSpace(text))
		var low, high int
		if _, fault := fmt.Sscanf(limits(t, dir), "%d..%d", &low, &high); fault != nil || low > high {
			t.Errorf("%v: %d above %d, %v", writes, low, high, fault)
		}
		return err
	}
	for _, khz := range []int{2530000, 930000, 2530000, 1200000, 1200000} {
		if err := p.Hold(khz); err != nil {
			t.Fatal(err)
		}
		if want := fmt.Sprintf("%d..%d", khz, khz); limits(t, dir) != want {
			t.Errorf("%s, want %s", limits(t, dir), want)
		}
	}
	for _, from := range []int{2530000, 930000, 1470000} {
		if err := errors.Join(p.Hold(from), p.Restore()); err != nil || limits(t, dir) != "1200000..2270000" {
			t.Errorf("back from %d: %s, %v", from, limits(t, dir), err)
		}
	}
	if len(writes) != 2*(5+2*3) {
		t.Errorf("%d writes: %v", len(writes), writes)
	}
	if err := p.Hold(2530001); err == nil || !strings.Contains(err.Error(), "must be 930..2530") {
		t.Error(err)
	}
}

// What can't be put back is said, with what to write.
func TestRefused(t *testing.T) {
	p := mustOpen(t, machine(t, nil))
	p.write = func(path, _ string) error { return &fs.PathError{Op: "write", Path: path, Err: unix.EINVAL} }
	if err := p.Hold(930000); err == nil || err.Error() != "930 MHz: policy0: scaling_min_freq: invalid argument: the driver refuses this frequency: name others" {
		t.Error(err)
	}
	if err := p.Restore(); err == nil || !strings.Contains(err.Error(), "by hand: echo 2270000 > "+p.dir+"/scaling_max_freq; echo 1200000 > ") {
		t.Error(err)
	}
	for cause, want := range map[error]string{unix.EROFS: "read-only here", unix.EACCES: "run as root", unix.EPERM: "run as root", unix.ENOENT: "another CPU"} {
		if err := p.refused(minFile, cause); !strings.Contains(err.Error(), want) || !errors.Is(err, cause) {
			t.Errorf("%v: %v, want %q", cause, err, want)
		}
	}
}

// A limit that is there already is said: to put it back makes it last.
func TestLimited(t *testing.T) {
	if words := mustOpen(t, machine(t, nil)).Limited(); !strings.Contains(words, "limited to 2270 of 2530 MHz") {
		t.Error(words)
	}
	if words := mustOpen(t, machine(t, map[string]string{"policy0/scaling_max_freq": "2530000"})).Limited(); words != "" {
		t.Error(words)
	}
}

func TestOpenRefuses(t *testing.T) {
	if _, err := Open(t.TempDir(), 0); !errors.Is(err, ErrNone) {
		t.Error(err)
	}
	if _, err := Open(machine(t, nil), 3); err == nil || !strings.Contains(err.Error(), "CPU 3: no policy") {
		t.Error(err)
	}
	for name, text := range map[string]string{
		"affected_cpus": "0 1 1024", "cpuinfo_max_freq": "fast", "cpuinfo_min_freq": "0", "scaling_min_freq": "2400000",
		"scaling_max_freq": "1000000001",
	} {
		_, err := Open(machine(t, map[string]string{"policy0/" + name: text}), 1)
		if err == nil || !strings.HasPrefix(err.Error(), "policy0: ") || len(err.Error()) > 200 {
			t.Errorf("%s %q: %v", name, text, err)
		}
	}
	if _, err := Open(machine(t, map[string]string{"policy0/scaling_max_freq": ""}), 1); err == nil || !strings.Contains(err.Error(), "choose another CPU") {
		t.Error(err)
	}
	dir := machine(t, nil)
	mustOpen(t, dir)
	if _, err := Open(dir, 0); err == nil || !strings.Contains(err.Error(), "another measurement") {
		t.Error(err)
	}
}

// The last one that can be set is taken; if none can, the error is that of the first.
func TestOpenLast(t *testing.T) {
	dir := machine(t, nil)
	p, cpu, err := OpenLast(dir, []int{0, 1, 2, 3})
	if err != nil || cpu != 1 {
		t.Fatalf("CPU %d, %v", cpu, err)
	}
	p.Close()
	if _, _, err := OpenLast(dir, []int{2, 3}); err == nil || !strings.HasPrefix(err.Error(), "CPU 2: ") {
		t.Error(err)
	}
	if _, _, err := OpenLast(dir, nil); err == nil {
		t.Error("none of none")
	}
}

func TestSteps(t *testing.T) {
	for list, want := range map[string][]int{
		"":                                     {2530000, 2300000, 2000000, 1700000, 1500000, 1200000, 930000},
		"\n":                                   {2530000, 2300000, 2000000, 1700000, 1500000, 1200000, 930000},
		"930000 2530000 1470000 1470000\n":     {2530000, 1470000, 930000},
		"930000 2530000 2531000 1":             {2530000, 930000},
		strings.Repeat("1470000 ", 20):         {2530000, 2300000, 2000000, 1700000, 1500000, 1200000, 930000},
		"930000 " + many(1000000, 20) + "\n\n": {2530000, 2300000, 2000000, 1700000, 1500000, 1200000, 930000},
	} {
		got, err := mustOpen(t, machine(t, map[string]string{"policy0/scaling_available_frequencies": list})).Steps()
		if err != nil || !slices.Equal(got, want) {
			t.Errorf("%q: %v, %v, want %v", list, got, err, want)
		}
	}
	one := map[string]string{"policy0/cpuinfo_min_freq": "2530000"}
	if _, err := mustOpen(t, machine(t, one)).Steps(); err == nil || !strings.Contains(err.Error(), "one frequency") {
		t.Error(err)
	}
	odd := map[string]string{"policy0/scaling_available_frequencies": "x"}
	if _, err := mustOpen(t, machine(t, odd)).Steps(); err == nil || !strings.Contains(err.Error(), `"x"`) {
		t.Error(err)
	}
}

// many are so many frequencies.
func many(from, n int) (list string) {
	for i := range n {
		list += fmt.Sprint(from+i*1000) + " "
	}
	return list
}

func TestFollow(t *testing.T) {
	dir := machine(t, nil)
	p := mustOpen(t, dir)
	for _, near := range []int{2165000, 2270000, 2385000} {
		if now, err := p.Follow(t.Context(), near); err != nil || now != 2270000 {
			t.Errorf("%d: %d, %v", near, now, err)
		}
	}
	for asked, want := range map[int]string{1200000: "runs at 2270 MHz: boost is on", 2400000: "runs at 2270 MHz: the driver does not reach it"} {
		if _, err := p.Follow(t.Context(), asked); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
	if now, err := p.Held(2270000); err != nil || now != 2270000 {
		t.Error(now, err)
	}
	if _, err := p.Held(2500000); err == nil || !strings.Contains(err.Error(), "asked for 2500 MHz, runs at 2270 MHz") {
		t.Error(err)
	}
	ended, end := context.WithCancel(t.Context())
	end()
	if _, err := p.Follow(ended, 1200000); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	// What the CPU had counts, not what was asked for.
	if err := os.WriteFile(filepath.Join(dir, "policy0/cpuinfo_avg_freq"), []byte("1210000\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if now, err := p.Follow(t.Context(), 1200000); err != nil || now != 1210000 {
		t.Error(now, err)
	}
}
