package where

import (
	"fmt"
	"io/fs"
	"slices"
	"strconv"
	"strings"
)

// A section holds functions that nobody may hook.
type section struct{ from, to, why string }

var sections = []section{
	{"__noinstr_text_start", "__noinstr_text_end", "runs where the kernel can't be watched (noinstr)"},
	{"__entry_text_start", "__entry_text_end", "is part of the way into the kernel (entry text)"},
	{"__kprobes_text_start", "__kprobes_text_end", "is part of how the kernel watches itself (kprobes text)"},
	{"_sinittext", "_einittext", "ran when the kernel booted, and is gone (init text)"},
}

const (
	blacklistFile = "sys/kernel/debug/kprobes/blacklist"
	elsewhere     = "name a function that calls it, or one that it calls"
)

// hookableFiles list what can be hooked; the second is where older systems mount it.
var hookableFiles = []string{
	"sys/kernel/tracing/available_filter_functions",
	"sys/kernel/debug/tracing/available_filter_functions",
}

// machinery are the functions that run to run us: by the beginning of their names,
// and those that the kernel itself keeps BPF programs off.
var (
	machinery = []string{"bpf_", "__bpf_", "htab_", "__htab_", "array_map_", "percpu_array_map_", "pcpu_freelist_",
		"__pcpu_freelist_", "___pcpu_freelist_", "trace_call_bpf", "kprobe_", "ftrace_", "arch_ftrace_", "perf_trace_run_bpf"}
	underBPF = []string{"migrate_disable", "migrate_enable", "rcu_read_unlock_strict", "preempt_count_add", "preempt_count_sub",
		"__rcu_read_lock", "__rcu_read_unlock"}
)

// refuse says why a function must not be hooked, nil when nothing speaks against it.
func refuse(root fs.FS, f Function, marks map[string]uint64) error {
	for _, prefix := range machinery {
		if f.Module == "" && strings.HasPrefix(f.Name, prefix) || slices.Contains(underBPF, f.Name) {
			return fmt.Errorf("%s: is of the machinery that watches (BPF and tracing), which can't watch itself: %s", f, elsewhere)
		}
	}
	for _, s := range sections {
		for _, address := range f.addresses {
			if from := marks[s.from]; from != 0 && address >= from && address < marks[s.to] {
				return fmt.Errorf("%s: %s: %s", f, s.why, elsewhere)
			}
		}
	}
	if blacklisted(root, f) {
		return fmt.Errorf("%s: the kernel forbids to hook it (/%s): %s", f, blacklistFile, elsewhere)
	}
	for _, path := range hookableFiles {
		if there, known := hookable(root, path, f); known && !there {
			return fmt.Errorf("%s: can't be hooked (notrace: not in /%s): %s", f, path, elsewhere)
		} else if known {
			return nil
		}
	}
	return nil // the kernel will say so itself
}

// forbidden is a line of the list of functions without probes.
type forbidden struct {
	from, to uint64 // 0: the kernel hides them
	name     string
}

// parseForbidden reads "0xfrom-0xto name".
func parseForbidden(line string) (f forbidden, ok bool) {
	fields := strings.Fields(line)
	if len(fields) != 2 {
		return f, false
	}
	from, to, _ := strings.Cut(fields[0], "-")
	var errs [2]error
	f.from, errs[0] = strconv.ParseUint(strings.TrimPrefix(from, "0x"), 16, 64)
	f.to, errs[1] = strconv.ParseUint(strings.TrimPrefix(to, "0x"), 16, 64)
	f.name = fields[1]
	return f, errs[0] == nil && errs[1] == nil
}

// covers tells whether f must not have a probe. Two functions may have one name, so
// the address decides where it is known.
func (b forbidden) covers(f Function) bool {
	if b.from == 0 || len(f.addresses) == 0 {
		return b.name == f.Name
	}
	return slices.ContainsFunc(f.addresses, func(a uint64) bool { return b.from <= a && a < b.to })
}

func blacklisted(root fs.FS, f Function) (yes bool) {
	_ = eachLine(root, blacklistFile, func(line string) {
		if b, ok := parseForbidden(line); ok && b.covers(f) {
			yes = true
		}
	})
	return yes
}

// parseHookable reads "name" or "name [module]"; newer kernels may say more behind.
func parseHookable(line string) (name, module string) {
	fields := strings.Fields(line)
	if len(fields) == 0 {
		return "", ""
	}
	if len(fields) > 1 && strings.HasPrefix(fields[1], "[") {
		module = strings.TrimSuffix(strings.TrimPrefix(fields[1], "["), "]")
	}
	return fields[0], module
}

// hookable looks f up in a list of what can be hooked. known is false when the list
// can't be read.
func hookable(root fs.FS, path string, f Function) (there, known bool) {
	lines := 0
	err := eachLine(root, path, func(line string) {
		lines++
		if name, module := parseHookable(line); name == f.Name && module == f.Module {
			there = true
		}
	})
	return there, err == nil && lines > 0
}
