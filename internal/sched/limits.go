package sched

import (
	"fmt"
	"io/fs"
	"path"
	"strings"

	"github.com/cilium/ebpf/btf"
)

// cgroupRoot is where the tree of cgroups is mounted.
const cgroupRoot = "/sys/fs/cgroup"

// limitsCallback is how the kernel tells of cpu.max, since 6.17.
const limitsCallback = "rota_cgroup_set_bandwidth"

// keepsLimits tells whether the kernel has that callback.
func keepsLimits(kernel *btf.Spec) bool {
	var ops *btf.Struct
	if kernel == nil || kernel.TypeByName("sched_ext_ops", &ops) != nil {
		return false
	}
	for _, member := range ops.Members {
		if "rota_"+member.Name == limitsCallback {
			return true
		}
	}
	return false
}

// checkLimits looks for cgroups that will not be treated as the kernel's own
// scheduler would: more of them than rota knows apart, and limits (cpu.max) on a
// kernel that does not tell a sched_ext scheduler of them.
func checkLimits(kernel *btf.Spec, cgroups fs.FS) Finding {
	f := Finding{Name: "cgroups", OK: true}
	all, limited := readCgroups(cgroups)
	f.Detail = fmt.Sprintf("%d, of which %d have a cpu.max", all, len(limited))
	switch {
	case len(limited) > 0 && !keepsLimits(kernel):
		f.OK = false
		f.Detail = fmt.Sprintf("%d have a cpu.max, of which this kernel does not tell: %s", len(limited), some(limited))
		f.Fix = "boot a kernel 6.17 or newer, or expect these to take more while rota runs"
	case all >= maxGroups:
		f.OK = false
		f.Detail = fmt.Sprintf("%d, of which rota knows %d apart: the cpu.weight and cpu.max of those made last do not count", all, maxGroups-1)
		f.Fix = "remove cgroups that nobody needs, and start rota again"
	}
	return f
}

// readCgroups counts the cgroups below the root of the tree, and names those
// that have a limit.
func readCgroups(cgroups fs.FS) (all int, limited []string) {
	_ = fs.WalkDir(cgroups, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil && (entry == nil || entry.IsDir()) {
			return fs.SkipDir // it is gone, or there is no such tree here
		}
		if err != nil {
			return nil
		}
		if entry.IsDir() && name != "." {
			all++
		}
		if entry.IsDir() || path.Base(name) != "cpu.max" {
			return nil
		}
		text, err := fs.ReadFile(cgroups, name)
		quota, _, _ := strings.Cut(string(text), " ")
		if err == nil && quota != "" && strings.TrimSpace(quota) != "max" {
			limited = append(limited, fmt.Sprintf("/%s (%s)", oneLine(path.Dir(name)), oneLine(string(text))))
		}
		return nil
	})
	return all, limited
}

// some names the first few.
func some(names []string) string {
	const most = 3
	text := strings.Join(names[:min(most, len(names))], ", ")
	if len(names) > most {
		text += ", ..."
	}
	return text
}

// oneLine is the first line of a file of the kernel, made printable: names of
// cgroups and what is in them were chosen by others.
func oneLine(text string) string {
	line, _, _ := strings.Cut(text, "\n")
	return strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return '?'
		}
		return r
	}, line)
}
