package daemon

import (
	"maps"
	"os"
	"strings"
	"syscall"
	"testing"
)

func dup(f *os.File) (int, error) { return syscall.Dup(int(f.Fd())) }

func TestParseUID(t *testing.T) {
	if uid, err := parseUID("Name:\ta\\nUid:\t9\t9\nState:\tR\nUid:\t1\t2\t3\t4\n"); uid != 2 || err != nil {
		t.Error(uid, err)
	}
	for _, bad := range []string{"", "Uid:\n", "Uid:\t1\n", "Uid:\t1\tx\n", "Uid:\t1\t-2\n", "Uid:\t1\t99999999999\n"} {
		if uid, err := parseUID(bad); err == nil {
			t.Errorf("%q: %d", bad, uid)
		}
	}
}

// Reads stay bounded whatever is there.
func TestReadIsBounded(t *testing.T) {
	proc := fakeProc{t, t.TempDir()}
	proc.write("1/comm", strings.Repeat("x", 10*maxRead))
	comm, err := procfs{proc.root}.comm(1)
	if err != nil || len(comm) > 2*maxRead {
		t.Errorf("%d bytes, %v", len(comm), err)
	}
}

// Every thread of every process is seen, and one that ended meanwhile is no error.
func TestEveryThread(t *testing.T) {
	proc := fakeProc{t, t.TempDir()}
	for _, name := range []string{"1/task/1/comm", "7/task/7/comm", "7/task/9/comm", "self/task/3/comm", "8/comm"} {
		proc.write(name, "x")
	}
	threads, err := procfs{proc.root}.everyThread()
	if err != nil {
		t.Fatal(err)
	}
	got := map[uint32]uint32{}
	for pid, tid := range threads {
		got[tid] = pid
	}
	if want := map[uint32]uint32{1: 1, 7: 7, 9: 7}; !maps.Equal(got, want) {
		t.Errorf("PID by TID: %v, want %v", got, want)
	}
	for range threads {
		return // who has seen enough is asked no more
	}
}

func FuzzProc(f *testing.F) {
	f.Add("Name:\tx\nUid:\t0\t0\t0\t0\n")
	f.Fuzz(func(t *testing.T, data string) {
		_, _ = parseUID(data)
	})
}
