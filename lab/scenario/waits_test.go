package scenario

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
)

func TestReadBoosts(t *testing.T) {
	begun, ended, err := readBoosts(`{"boosts": {"futex": 1, "locks": 20, "wakeups": 300, "binder": 4000, "chained": 9, "ended": 4320}}`)
	if err != nil || begun != 4321 || ended != 4320 {
		t.Errorf("%v, %v, %v", begun, ended, err)
	}
	for _, text := range []string{"", "{}", `{"boosts": 1}`} {
		if _, _, err := readBoosts(text); err == nil {
			t.Errorf("%q was understood", text)
		}
	}
}

func TestReadSurvivors(t *testing.T) {
	for text, want := range map[string]bool{
		`{"tid": 5, "class": "low", "level": "low"}`:                                         false,
		`{"tid": 5, "class": "low", "level": "high"}`:                                        true,
		`{"tid": 5, "class": "low", "level": "low", "givers": [{"tid": 6}]}`:                 true,
		`{"tid": 5, "class": "low", "level": "low", "waitsFor": [{"tid": 6}]}`:               false,
		`{"tid": 5, "class": "low", "level": "low", "waitsFor": [{"tid": 6,"gives": true}]}`: true,
	} {
		threads, err := readSurvivors(`{"threads": [` + text + `]}`)
		if err != nil || len(threads) != 1 || threads[0].boosted() != want {
			t.Errorf("%s: %+v, %v", text, threads, err)
		}
	}
	for _, text := range []string{"", "{}", `{"threads": [{"class": "low", "level": "low"}]}`, `{"threads": [{"tid": 1}]}`} {
		if _, err := readSurvivors(text); err == nil {
			t.Errorf("%q was understood", text)
		}
	}
}

func TestWaitsProcesses(t *testing.T) {
	proc := t.TempDir()
	for pid, comm := range map[string]string{"7": "waits-chief", "8": "waits-mid", "19": "waits-low", "20": "sh", "self": "waits-mid"} {
		if err := os.Mkdir(filepath.Join(proc, pid), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(proc, pid, "comm"), []byte(comm+"\n"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	pids, err := waitsProcesses(proc, 7)
	slices.Sort(pids)
	if err != nil || !slices.Equal(pids, []int{8, 19}) {
		t.Errorf("%v, %v", pids, err)
	}
}
