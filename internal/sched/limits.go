package sched

import (
	"fmt"
	"io/fs"
	"path"
	"strings"
)

// cgroupRoot is where the tree of cgroups is mounted.
const cgroupRoot = "/sys/fs/cgroup"

// checkLimits looks for cgroups whose CPU time is limited by cpu.max: the
// kernel's own scheduler keeps such limits, and rota does not.
func checkLimits(cgroups fs.FS) Finding {
	f := Finding{Name: "cpu.max", OK: true, Detail: "no cgroup is limited"}
	var limited []string
	_ = fs.WalkDir(cgroups, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil && (entry == nil || entry.IsDir()) {
			return fs.SkipDir // it is gone, or there is no such tree here
		}
		if err != nil || entry.IsDir() || path.Base(name) != "cpu.max" {
			return nil
		}
		text, err := fs.ReadFile(cgroups, name)
		quota, _, _ := strings.Cut(string(text), " ")
		if err == nil && quota != "" && strings.TrimSpace(quota) != "max" {
			limited = append(limited, fmt.Sprintf("/%s (%s)", oneLine(path.Dir(name)), oneLine(string(text))))
		}
		return nil
	})
	if len(limited) == 0 {
		return f
	}
	const most = 3
	f.OK = false
	f.Detail = fmt.Sprintf("%d cgroups have a limit, which rota does not keep: %s", len(limited), strings.Join(limited[:min(most, len(limited))], ", "))
	if len(limited) > most {
		f.Detail += ", ..."
	}
	f.Fix = "expect these to take more while rota runs; cpu.weight is kept, or put them into a class of tier background"
	return f
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
