package class

import (
	"fmt"
	"testing"
)

func TestClassify(t *testing.T) {
	tests := []struct {
		name string
		rule Rule
		yes  []Workload
		no   []Workload
	}{
		{"cgroup and below", Rule{Cgroup: "kubepods.slice/**/upf-*"},
			[]Workload{{Cgroup: "/kubepods.slice/upf-1"}, {Cgroup: "/kubepods.slice/a/b/upf-1/ctr"}},
			[]Workload{{Cgroup: "/kubepods.slice"}, {Cgroup: "/x/kubepods.slice/upf-1"}, {Cgroup: "/kubepods.slice/xupf-1"}, {}}},
		{"star stays in a component", Rule{Cgroup: "a/*/c"},
			[]Workload{{Cgroup: "/a/b/c"}, {Cgroup: "/a/b/c/d"}},
			[]Workload{{Cgroup: "/a/c"}, {Cgroup: "/a/b/b/c"}}},
		{"leading slash means nothing", Rule{Cgroup: "/a/"}, []Workload{{Cgroup: "/a"}, {Cgroup: "/a/b"}}, []Workload{{Cgroup: "/ab"}, {Cgroup: "/"}}},
		{"root is everything", Rule{Cgroup: "/"}, []Workload{{Cgroup: "/"}, {Cgroup: "/a"}}, nil},
		{"backslash is itself", Rule{Cgroup: `app\x2d*`}, []Workload{{Cgroup: `/app\x2dfoo`}}, []Workload{{Cgroup: "/app-foo"}}},
		{"exe", Rule{Exe: "/system/*"}, []Workload{{Exe: "/system/bin/app_process64"}}, []Workload{{Exe: "/systemd"}, {Exe: ""}}},
		{"kernel threads have no exe", Rule{Exe: "**"}, []Workload{{Exe: "/x"}}, []Workload{{Exe: ""}}},
		{"comm", Rule{Comm: "kworker/*:1?"}, []Workload{{Comm: "kworker/0:1H"}}, []Workload{{Comm: "kworker/0:1"}}},
		{"comm with newline", Rule{Comm: "a?b"}, []Workload{{Comm: "a\nb"}, {Comm: "a\xffb"}}, []Workload{{Comm: "ab"}}},
		{"set", Rule{Comm: "[!a-c]x[]]"}, []Workload{{Comm: "dx]"}}, []Workload{{Comm: "ax]"}, {Comm: "dx"}}},
		{"user by name", Rule{User: "alice"}, []Workload{{User: "alice", UID: 7}}, []Workload{{User: "bob"}, {}}},
		{"user by number", Rule{User: "0"}, []Workload{{User: "root", UID: 0}}, []Workload{{User: "alice", UID: 7}}},
		{"function", Rule{Function: "gtp:gtp_dev_xmit"},
			[]Workload{{Functions: []string{"a", "gtp:gtp_dev_xmit"}}}, []Workload{{Functions: []string{"gtp_dev_xmit"}}, {}}},
		{"all keys", Rule{Comm: "a", User: "7"}, []Workload{{Comm: "a", UID: 7}}, []Workload{{Comm: "a", UID: 8}, {Comm: "b", UID: 7}}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			tt.rule.Class = 3
			c, err := Compile([]Rule{tt.rule})
			if err != nil {
				t.Fatal(err)
			}
			for _, w := range tt.yes {
				if class, rule := c.Classify(w); class != 3 || rule != 0 {
					t.Errorf("%+v: class %d, rule %d, want a match", w, class, rule)
				}
			}
			for _, w := range tt.no {
				if class, rule := c.Classify(w); class != 0 || rule != NoRule {
					t.Errorf("%+v: class %d, rule %d, want no match", w, class, rule)
				}
			}
		})
	}
}

func TestFirstMatchWins(t *testing.T) {
	c, err := Compile([]Rule{{Comm: "*b", Class: 1}, {Comm: "ab", Class: 2}, {User: "5", Class: 3}, {Cgroup: "x", Class: 4}})
	if err != nil {
		t.Fatal(err)
	}
	for want, w := range map[int]Workload{
		0: {Comm: "ab", UID: 5, Cgroup: "/x"},
		2: {Comm: "a", UID: 5, Cgroup: "/x"},
		3: {Comm: "a", UID: 6, Cgroup: "/x/y"},
	} {
		if _, rule := c.Classify(w); rule != want {
			t.Errorf("%+v: rule %d, want %d", w, rule, want)
		}
	}
}

func TestCheck(t *testing.T) {
	tests := []struct{ key, value, want string }{
		{"cgroup", "a/**/b", ""},
		{"cgroup", "a**", "has ** inside a name: put it between slashes, or write *"},
		{"cgroup", "a/../b", "has . or .. in it: write the path itself"},
		{"cgroup", "a/[b", "has a [ without ]: close it, or write [[] for the character itself"},
		{"exe", "ping", "is not a whole path: begin it with / or **/"},
		{"exe", "**/ping", ""},
		{"comm", "RenderThread", ""},
		{"comm", "RenderThreadLong", `can match no task, the kernel keeps 15 bytes of a name: write "RenderThreadLon"`},
		{"comm", "[z-a]", "has a range that runs backwards: write the lower character first"},
		{"user", "alice", ""},
		{"user", "1000", ""},
		{"user", "99999999999", "is not a user: write a name, or a number up to 4294967295"},
		{"kernelFunction", "gtp:gtp_dev_xmit.isra.0", ""},
		{"kernelFunction", "gtp_*", "is not a function: write its name as in /proc/kallsyms, one of a module as module:function"},
		{"user", "a*", "is not a user: write one name or number, without patterns"},
		{"nice", "1", "is not a match key: use cgroup, comm, exe, user or kernelFunction"},
	}
	for _, tt := range tests {
		got := ""
		if err := Check(tt.key, tt.value); err != nil {
			got = err.Error()
		}
		if got != tt.want {
			t.Errorf("Check(%q, %q) = %q, want %q", tt.key, tt.value, got, tt.want)
		}
	}
}

func TestNeeds(t *testing.T) {
	c, err := Compile([]Rule{{Comm: "a"}, {User: "1"}})
	if err != nil {
		t.Fatal(err)
	}
	if got, want := c.Needs(), (Needs{Comm: true, UID: true}); got != want {
		t.Errorf("needs %+v, want %+v", got, want)
	}
}

// A pattern of many stars must not take exponential time.
func TestGlobIsNotExponential(t *testing.T) {
	pattern, text := "", ""
	for range 60 {
		pattern += "a*"
		text += "aaaaaaaaaa"
	}
	g, err := compileGlob(pattern + "b")
	if err != nil {
		t.Fatal(err)
	}
	if g.match(text) {
		t.Error("matches")
	}
}

// BenchmarkClassify is the worst ordinary case: 10,000 rules below one slice.
func BenchmarkClassify(b *testing.B) {
	var rules []Rule
	for i := range 10000 {
		rules = append(rules, Rule{Cgroup: fmt.Sprintf("kubepods.slice/**/upf-%d-*", i), Class: 1})
	}
	c, err := Compile(rules)
	if err != nil {
		b.Fatal(err)
	}
	w := Workload{Cgroup: "/kubepods.slice/kubepods-burstable.slice/kubepods-pod1234.slice/upf-9999-x/cri-abc.scope", Comm: "upf", Exe: "/usr/bin/upf"}
	for b.Loop() {
		if _, rule := c.Classify(w); rule != 9999 {
			b.Fatal(rule)
		}
	}
}

// What Literal makes matches its text, and not what a pattern would match.
func TestLiteral(t *testing.T) {
	for text, want := range map[string]string{
		"system.slice/a@1.service": "system.slice/a@1.service", "kworker/u8:2": "kworker/u8:2",
		"a*b?[c]\\": "a[*]b[?][[]c]\\", "a\xffb": "a?b",
	} {
		got := Literal(text)
		g, err := compileGlob(got)
		if got != want || err != nil || !g.match(text) || g.match(text+"x") || g.match("aXbYc\\") {
			t.Errorf("%q: %q, error %v, want %q", text, got, err, want)
		}
	}
}
