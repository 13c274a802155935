package runnable

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

// proc makes a folder that looks like /proc with two tasks: process 7 and its
// thread 8.
func proc(t *testing.T, namespace string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range map[string]string{
		"7/status": "Name:\tapp:x\nUmask:\t0022\nTgid:\t7\nPid:\t7\n",
		"8/status": "Name:\tworker\nTgid:\t7\nPid:\t8\n",
	} {
		file := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.MkdirAll(filepath.Join(dir, "self/ns"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(namespace, filepath.Join(dir, "self/ns/pid")); err != nil {
		t.Fatal(err)
	}
	return dir
}

func TestFindProcess(t *testing.T) {
	dir := proc(t, firstNamespace)
	found, err := FindProcess(dir, 7)
	if err != nil || found.process != 7 || found.Name != "process 7 (app:x)" {
		t.Errorf("%+v, error %v", found, err)
	}
	for pid, want := range map[int]string{
		0:  "process 0: processes have numbers from 1 on: find it with ps",
		-4: "process -4: processes have numbers from 1 on: find it with ps",
		8:  "process 8: is a thread of process 7: name that one, all its threads are counted",
		9:  "process 9: there is none: find it with ps",
	} {
		if _, err := FindProcess(dir, pid); err == nil || err.Error() != want {
			t.Errorf("%v, want %q", err, want)
		}
	}
	want := "process 7: in this container processes have other numbers than in the kernel: run rota outside of it, or name a cgroup"
	if _, err := FindProcess(proc(t, "pid:[4026532000]"), 7); err == nil || err.Error() != want {
		t.Errorf("%v, want %q", err, want)
	}
}

func TestEnded(t *testing.T) {
	child := exec.Command("sleep", "60")
	if err := child.Start(); err != nil {
		t.Skip(err)
	}
	target, err := FindProcess("/proc", child.Process.Pid)
	if err != nil && strings.Contains(err.Error(), "container") {
		t.Skip(err)
	}
	if err != nil || target.Ended() {
		t.Errorf("ended %v, error %v", target.Ended(), err)
	}
	child.Process.Kill()
	child.Wait()
	for end := time.Now().Add(5 * time.Second); !target.Ended(); {
		if time.Now().After(end) {
			t.Fatalf("process %s has not ended", strconv.Itoa(child.Process.Pid))
		}
		time.Sleep(time.Millisecond)
	}
}

func TestFindCgroup(t *testing.T) {
	root := t.TempDir()
	if err := os.WriteFile(filepath.Join(root, "cgroup.procs"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{
		"a.slice":           `cgroup "a.slice": there is no ` + root + `/a.slice: look behind "0::" in /proc/PID/cgroup`,
		root + "/b":         `cgroup "` + root + `/b": there is no ` + root + "/b: ",
		"../../etc":         `cgroup "../../etc": there is no ` + root + "/etc: ",
		"/cgroup.procs":     `cgroup "/cgroup.procs": is a file: name the folder that it is in`,
		"/":                 `cgroup "/": ` + root + " is not of cgroup v2: name a folder of that (see: findmnt -t cgroup2), or a process",
		root:                `cgroup "` + root + `": ` + root + " is not of cgroup v2",
		root + "b":          ": there is no " + root + root + "b: ",
		root + "/x/../../y": `there is no ` + root,
	} {
		if _, err := FindCgroup(root, path); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}
