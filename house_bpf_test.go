package rota

import (
	"fmt"
	"io/fs"
	"path"
	"regexp"
	"slices"
	"strings"
)

const (
	maxEssayLines    = 80 // on top of rota.bpf.c
	maxHeadLines     = 40 // on top of each other part
	maxCallbackLines = 30
)

// callbacks in the order of the kernel's struct sched_ext_ops.
var callbacks = []string{
	"select_cpu", "enqueue", "dequeue", "dispatch", "tick", "runnable",
	"running", "stopping", "quiescent", "yield", "core_sched_before",
	"set_weight", "set_cpumask", "update_idle", "cpu_acquire", "cpu_release",
	"init_task", "exit_task", "enable", "disable", "dump", "dump_cpu",
	"dump_task", "cgroup_init", "cgroup_exit", "cgroup_prep_move",
	"cgroup_move", "cgroup_cancel_move", "cgroup_set_weight",
	"cgroup_set_bandwidth", "cgroup_set_idle", "sub_attach", "sub_detach",
	"cpu_online", "cpu_offline", "init", "exit",
}

var (
	functionStart = regexp.MustCompile(`^(\{|[A-Za-z_].*\).*\{)$`)
	callbackName  = regexp.MustCompile(`\bROTA_OP\((\w+)`)
	inKernel      = regexp.MustCompile(`\bstatic\b|SEC\(|__weak`)
)

// cFunction is a function in C: what stands before its body, and how many
// lines the body has.
type cFunction struct {
	head  string
	line  int // of the opening brace, from 1
	lines int
}

// cFunctions finds the functions of a file formatted as this repository
// formats C: a body ends with a brace in the first column.
func cFunctions(text string) (found []cFunction) {
	lines := strings.Split(text, "\n")
	for i := 0; i < len(lines); i++ {
		if !functionStart.MatchString(lines[i]) {
			continue
		}
		top := i
		for top > 0 && lines[top-1] != "" && !strings.HasSuffix(lines[top-1], ";") && !strings.HasSuffix(lines[top-1], "*/") && lines[top-1] != "}" {
			top--
		}
		end := i + 1
		for end < len(lines) && !strings.HasPrefix(lines[end], "}") {
			end++
		}
		found = append(found, cFunction{head: strings.Join(lines[top:i+1], " "), line: i + 1, lines: end - i + 1})
		i = end
	}
	return found
}

// headComment is the first block comment of a file, the line with the licence
// aside.
func headComment(text string) string {
	for line := range strings.Lines(text) {
		if strings.TrimSpace(line) != "" && !strings.Contains(line, "SPDX") {
			break
		}
		text = strings.TrimPrefix(text, line)
	}
	end := strings.Index(text, "*/")
	if !strings.HasPrefix(text, "/*") || end < 0 {
		return ""
	}
	return text[:end+2]
}

// bpfParts: one translation unit; each part says the problem, how it is
// solved and where that ends; a callback reads as prose.
func bpfParts(tree fs.FS) (faults []string, err error) {
	main := false
	err = files(tree, func(name string, data []byte) error {
		if path.Dir(name) != "bpf" {
			return nil
		}
		text := string(data)
		main = main || name == "bpf/rota.bpf.c"
		faults = append(faults, partHead(name, headComment(text))...)
		faults = append(faults, callbackRules(name, text)...)
		return nil
	}, "*.c", "*.h")
	if !main {
		faults = append(faults, "bpf/rota.bpf.c: missing")
	}
	return faults, err
}

func partHead(name, head string) (faults []string) {
	most := maxHeadLines
	if name == "bpf/rota.bpf.c" {
		most = maxEssayLines
	}
	if lines := strings.Count(head, "\n") + 1; lines > most {
		faults = append(faults, fmt.Sprintf("%s: %d lines on top, at most %d", name, lines, most))
	}
	if head == "" {
		faults = append(faults, name+": says nothing on top of what it is about")
	}
	if !strings.HasSuffix(name, ".bpf.h") {
		return faults
	}
	for _, word := range []string{"problem", "how", "limits"} {
		if !strings.Contains(strings.ToLower(head), word) {
			faults = append(faults, fmt.Sprintf("%s: the head has no %q", name, word))
		}
	}
	return faults
}

// verifiedOnce are the functions that the verifier shall look at by themselves;
// docs/decisions/0003 says why.
var verifiedOnce = regexp.MustCompile(`^__noinline (bool cpu_in_mask|u32 place_find_waiting|bool place_search|bool place_balance|bool place_steal_from|bool rescue_from|bool rescue_orphan|int rescue_hand_over_priority|bool priority_release|int place_clear_queue|s32 own_pick_allowed|int own_rehome|int rescue_hand_over|int group_visit|int limit_sweep|int queue_join|int queue_leave|u64 limit_charge|int limit_release|int limit_set|bool pick_dispatch|int pick_choose|int ghost_sweep|int record_write_(?:task|leave|queue|ghost|ahead)|bool preempt_wins|bool preempt_defers|int preempt_cut_begun|bool place_rotate|s32 place_elsewhere|int lend_end|int limit_find_nearest|bool limit_adopt|int inherit_call|u64 inherit_step|int inherit_follow|int inherit_pass_on|bool inherit_fetch|bool inherit_answer|u32 binder_find_taker)\b`)

func callbackRules(name, text string) (faults []string) {
	last := 0
	for _, f := range cFunctions(text) {
		if !inKernel.MatchString(f.head) && !verifiedOnce.MatchString(f.head) {
			faults = append(faults, fmt.Sprintf("%s:%d: a function is static", name, f.line))
		}
		m := callbackName.FindStringSubmatch(f.head)
		if m == nil {
			continue
		}
		if f.lines > maxCallbackLines {
			faults = append(faults, fmt.Sprintf("%s:%d: rota_%s: %d lines, at most %d for a callback", name, f.line, m[1], f.lines, maxCallbackLines))
		}
		at := slices.Index(callbacks, m[1])
		if at < last {
			faults = append(faults, fmt.Sprintf("%s:%d: rota_%s: unknown, or not in the kernel's order", name, f.line, m[1]))
		}
		last = max(at, last)
	}
	return faults
}

// cLengths: what is short can be read, also in C.
func cLengths(tree fs.FS) (faults []string, err error) {
	err = files(tree, func(name string, data []byte) error {
		for _, f := range cFunctions(string(data)) {
			if f.lines > maxFunctionLines {
				faults = append(faults, fmt.Sprintf("%s:%d: function of %d lines, at most %d", name, f.line, f.lines, maxFunctionLines))
			}
		}
		return nil
	}, "*.c", "*.h")
	return faults, err
}

// licences: bpf/ is GPL-2.0-only, as the kernel asks of what it loads;
// everything else is Apache-2.0. Files in C carry their licence, since they
// are the ones that get copied.
func licences(tree fs.FS) (faults []string, err error) {
	for name, words := range map[string]string{"LICENSE": "Apache License", "bpf/LICENSE": "GNU GENERAL PUBLIC LICENSE"} {
		if data, err := fs.ReadFile(tree, name); err != nil || !strings.Contains(string(data), words) {
			faults = append(faults, fmt.Sprintf("%s: want the %s", name, words))
		}
	}
	err = files(tree, func(name string, data []byte) error {
		want := "SPDX-License-Identifier: Apache-2.0"
		if strings.HasPrefix(name, "bpf/") {
			want = "SPDX-License-Identifier: GPL-2.0-only"
		}
		if first, _, _ := strings.Cut(string(data), "\n"); !strings.Contains(first, want) {
			faults = append(faults, fmt.Sprintf("%s: the first line is not %q", name, want))
		}
		return nil
	}, "*.c", "*.h")
	return faults, err
}

const (
	gpl    = "// SPDX-License-Identifier: GPL-2.0-only\n"
	apache = "// SPDX-License-Identifier: Apache-2.0\n"
)

// brokenBPF is what the rules about C must find. A tree of one part has no
// rota.bpf.c, so bpfParts always finds that as well.
func brokenBPF() []broken {
	filled := func(lines int) string { return strings.Repeat("\n", lines) }
	head := "/* Problem: x. How: y. Limits: z. */\n"
	return []broken{
		{"no program", bpfParts, "bpf/eevdf.h", gpl + head, "rota.bpf.c: missing"},
		{"essay", bpfParts, "bpf/rota.bpf.c", gpl + "/*\n * A task.\n */\n", ""},
		{"long essay", bpfParts, "bpf/rota.bpf.c", gpl + "/*" + filled(maxEssayLines) + "*/\n", "81 lines on top"},
		{"long head", bpfParts, "bpf/rota.h", gpl + "/*" + filled(maxHeadLines) + "*/\n", "41 lines on top"},
		{"no head", bpfParts, "bpf/rota.h", gpl + "int x;\n", "says nothing"},
		{"no limits", bpfParts, "bpf/queue.bpf.h", gpl + "/* Problem: x. How: y. */\n", `has no "limits"`},
		{"global function", bpfParts, "bpf/rota.bpf.c", gpl + head + "int f(void)\n{\n}\n", "is static"},
		{"static function", bpfParts, "bpf/rota.bpf.c", gpl + head + "static int f(void)\n{\n}\n", ""},
		{"long callback", bpfParts, "bpf/rota.bpf.c", gpl + head + "SEC(\"struct_ops/rota_tick\")\nvoid ROTA_OP(tick, struct task_struct *p)\n{" + filled(maxCallbackLines) + "}\n", "31 lines"},
		{"order of callbacks", bpfParts, "bpf/rota.bpf.c", gpl + head + "SEC(\"x\")\nvoid ROTA_OP(tick)\n{\n}\n\nSEC(\"x\")\nvoid ROTA_OP(enqueue)\n{\n}\n", "kernel's order"},
		{"long function in C", cLengths, "lab/load/a.c", apache + "int main(void)\n{" + filled(maxFunctionLines) + "}\n", "61 lines"},
		{"licence of a load", licences, "lab/load/a.c", gpl, "Apache-2.0"},
		{"licence of a part", licences, "bpf/a.h", apache, "GPL-2.0-only"},
	}
}
