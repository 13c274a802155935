package sched

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/cilium/ebpf/btf"
	"golang.org/x/sys/unix"
)

// UnfitError says why the scheduler cannot run here.
type UnfitError struct{ Finding Finding }

func (e *UnfitError) Error() string {
	return fmt.Sprintf("%s: %s; %s", e.Finding.Name, e.Finding.Detail, e.Finding.Fix)
}

// Unfit tells whether the kernel itself is the reason (exit code 78).
func (e *UnfitError) Unfit() bool { return e.Finding.Unfit }

// Check looks at the running kernel and at our privileges and reports
// whether Load would work, without loading anything.
func Check() []Finding {
	return check(btf.LoadKernelSpec())
}

// check is Check for types that were read already, which takes long.
func check(kernel *btf.Spec, err error) []Finding {
	findings := []Finding{checkKernel(), checkSchedExt()}
	findings = append(findings, checkBTF(kernel, err)...)
	return append(findings, checkPrivileges(), checkRival(), checkIsolation(), checkLimits(kernel, os.DirFS(cgroupRoot)))
}

func checkKernel() Finding {
	var name unix.Utsname
	if err := unix.Uname(&name); err != nil {
		return Finding{Name: "kernel", Detail: err.Error()}
	}
	return Finding{Name: "kernel", OK: true, Detail: unix.ByteSliceToString(name.Release[:]) + " " +
		unix.ByteSliceToString(name.Machine[:])}
}

func checkSchedExt() Finding {
	f := Finding{Name: "sched_ext", Fatal: true, Unfit: true}
	if _, err := os.Stat(sysSchedExt); err == nil {
		f.OK, f.Detail = true, "state "+readLine(filepath.Join(sysSchedExt, "state"))
		return f
	}
	f.Detail = "this kernel has no sched_ext (no " + sysSchedExt + ")"
	f.Fix = "boot a kernel 6.12 or newer that is built with CONFIG_SCHED_CLASS_EXT=y"
	return f
}

// checkBTF looks at the kernel's types, and at each kernel function that the
// scheduler calls.
func checkBTF(kernel *btf.Spec, err error) []Finding {
	types := Finding{Name: "BTF", Fatal: true, Unfit: true,
		Fix: "boot a kernel that is built with CONFIG_DEBUG_INFO_BTF=y"}
	if err != nil {
		types.Detail = "the kernel does not describe its types: " + err.Error()
		return []Finding{types}
	}
	types.OK, types.Detail, types.Fix = true, "present", ""
	return []Finding{types, checkKfuncs(kernel)}
}

func checkKfuncs(kernel *btf.Spec) Finding {
	f := Finding{Name: "kfuncs", Fatal: true, Unfit: true}
	spec, err := readObject()
	if err != nil {
		f.Detail, f.Fix = err.Error(), "build rota again"
		return f
	}
	var missing, broken []string
	needed := kfuncs(spec)
	for name, optional := range needed {
		fn, err := kernelFunc(kernel, name)
		switch {
		case err != nil:
			f.Detail = err.Error()
			return f
		case fn == nil && !optional:
			missing = append(missing, name)
		case fn != nil && malformed(fn):
			broken = append(broken, name)
		}
	}
	slices.Sort(missing)
	slices.Sort(broken)
	switch {
	case len(broken) > 0:
		f.Detail = fmt.Sprintf("the kernel's BTF has malformed prototypes of %d functions that rota calls: %s",
			len(broken), strings.Join(broken, ", "))
		f.Fix = "boot a kernel whose BTF was made by pahole 1.31 or newer (Debian: 7.0 or 7.2.13 instead of 7.1 or 7.2.12 from backports)"
	case len(missing) > 0:
		f.Detail = "the kernel lacks functions that rota calls: " + strings.Join(missing, ", ")
		f.Fix = "boot a kernel 6.12 or newer that is built with CONFIG_SCHED_CLASS_EXT=y"
	default:
		f.OK, f.Detail = true, fmt.Sprintf("all %d present or not needed here, none malformed", len(needed))
	}
	return f
}

// checkPrivileges asks for the capabilities that loading needs.
func checkPrivileges() Finding {
	f := Finding{Name: "privileges", Fatal: true}
	has, err := capabilities()
	if err != nil {
		f.Detail, f.Fix = "capabilities: "+err.Error(), "run rota as root"
		return f
	}
	var missing []string
	if !has(unix.CAP_SYS_ADMIN) {
		for name, capability := range map[string]int{"CAP_BPF": unix.CAP_BPF, "CAP_PERFMON": unix.CAP_PERFMON} {
			if !has(capability) {
				missing = append(missing, name)
			}
		}
	}
	slices.Sort(missing)
	if len(missing) > 0 {
		f.Detail = "missing " + strings.Join(missing, " and ")
		f.Fix = "run as root, or start it with: systemctl start rota"
		return f
	}
	f.OK, f.Detail = true, "sufficient"
	return f
}

// capabilities returns what tells whether this process has one.
func capabilities() (has func(capability int) bool, err error) {
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var data [2]unix.CapUserData
	if err := unix.Capget(&header, &data[0]); err != nil {
		return nil, err
	}
	return func(capability int) bool {
		return data[capability/32].Effective&(1<<(capability%32)) != 0
	}, nil
}

// checkRival looks for a scheduler that is loaded already.
func checkRival() Finding {
	f := Finding{Name: "another scheduler", OK: true, Fatal: true, Detail: "none"}
	ops, err := os.ReadFile(filepath.Join(sysSchedExt, "root", "ops"))
	if err != nil || readLine(filepath.Join(sysSchedExt, "state")) != "enabled" {
		return f
	}
	name := strings.TrimSpace(string(ops))
	f.Detail = fmt.Sprintf("%q is loaded: only one scheduler can be", name)
	f.OK = false
	f.Fix = "stop it first; for scx schedulers: systemctl stop scx scx_loader"
	if name == "rota" {
		f.Fix = "rota runs already; see: rota status"
	}
	return f
}

// checkIsolation looks for the kernel parameter that sched_ext refuses.
func checkIsolation() Finding {
	f := Finding{Name: "isolcpus", OK: true, Fatal: true, Unfit: true, Detail: "not used"}
	for parameter := range strings.FieldsSeq(readLine("/proc/cmdline")) {
		value, ok := strings.CutPrefix(parameter, "isolcpus=")
		if !ok || !isolatesDomains(value) {
			continue
		}
		f.OK, f.Detail = false, "the kernel was booted with isolcpus="+value+", which sched_ext does not work with"
		f.Fix = "remove isolcpus= from the kernel's command line; use cpusets or nohz_full= instead"
	}
	return f
}

// isolatesDomains tells whether a value of isolcpus= takes CPUs out of the
// scheduling domains: it does without flags, or with the flag "domain".
func isolatesDomains(value string) bool {
	flagged := false
	for part := range strings.SplitSeq(value, ",") {
		switch part {
		case "domain":
			return true
		case "nohz", "managed_irq":
			flagged = true
		}
	}
	return !flagged
}

// attachHint puts the kernel's reasons for not attaching into words.
func attachHint(err error) error {
	switch {
	case errors.Is(err, syscall.EBUSY):
		return fmt.Errorf("%w: another sched_ext scheduler is loaded; stop it first", err)
	case errors.Is(err, syscall.EPERM):
		return fmt.Errorf("%w: not permitted; run rota as root", err)
	case errors.Is(err, syscall.EINVAL):
		return fmt.Errorf("%w: the kernel refused the scheduler; its reason is in: dmesg", err)
	}
	return err
}
