package runnable

import (
	"encoding/binary"
	"errors"
	"fmt"
	"strings"
	"syscall"
	"testing"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/btf"
)

// The object has what Go asks of it, in the layout that Go reads.
func TestObject(t *testing.T) {
	spec, err := readObject()
	if err != nil {
		t.Fatal(err)
	}
	for name, size := range map[string]uint32{"wanted_process": 4, "wanted_cgroup": 8, "begun": 4} {
		if v := spec.Variables[name]; v == nil || v.Size() != size {
			t.Errorf("variable %s: %v, want %d bytes", name, v, size)
		}
	}
	for name, event := range map[string]string{
		"runnable_wakeup": "sched_wakeup", "runnable_new": "sched_wakeup_new", "runnable_switch": "sched_switch",
	} {
		if p := spec.Programs[name]; p == nil || p.AttachTo != event || p.AttachType != ebpf.AttachTraceRawTp {
			t.Errorf("program %s: %v, want one on %s", name, p, event)
		}
	}
	if len(spec.Programs) != 3 {
		t.Errorf("%d programs, want 3", len(spec.Programs))
	}
	waits, ok := btf.As[*btf.Struct](spec.Maps["waits"].Value)
	if !ok || int(waits.Size) != binary.Size(countedWaits{}) {
		t.Fatalf("struct waits: %v, want %d bytes", waits, binary.Size(countedWaits{}))
	}
	layout := ""
	for _, m := range waits.Members {
		layout += fmt.Sprintf("%s@%d ", m.Name, m.Offset.Bytes())
	}
	if want := fmt.Sprintf("histogram@0 total_ns@%d longest_ns@%d lost@%d ", 8*buckets, 8*buckets+8, 8*buckets+16); layout != want {
		t.Errorf("struct waits: %s, want %s", layout, want)
	}
}

func TestWithFix(t *testing.T) {
	for _, tt := range []struct {
		err  error
		want string
	}{
		{fmt.Errorf("load: %w", syscall.EPERM), "load: operation not permitted: run as root"},
		{fmt.Errorf("load: %w", &ebpf.VerifierError{Cause: syscall.EACCES}), "please report it with the version of the kernel"},
		{&noTypesError{errors.New("no file")}, "kernel: does not describe its types: no file: boot a kernel that is built with CONFIG_DEBUG_INFO_BTF=y"},
		{fmt.Errorf("load: %w", ebpf.ErrNotSupported), "boot a kernel 6.1 or newer"},
		{errors.New("else"), "else"},
	} {
		if got := withFix(tt.err).Error(); !strings.HasSuffix(got, tt.want) {
			t.Errorf("%s, want %s", got, tt.want)
		}
	}
}
