// Package examples holds the tests of the configurations that are shown here:
// they load, and give real tasks the classes that their comments speak of.
package examples

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"rota/internal/class"
	"rota/internal/config"
)

// configurations are the files of this folder.
func configurations(t *testing.T) []string {
	t.Helper()
	found, err := filepath.Glob("*.yaml")
	if err != nil || len(found) < 2 {
		t.Fatalf("configurations %v, error %v", found, err)
	}
	return found
}

var commented = regexp.MustCompile(`(?m)^#  (- |  )`)

// TestLoad reads each file as "rota config check" does, and once more with what is
// commented out in force.
func TestLoad(t *testing.T) {
	for _, name := range configurations(t) {
		shut, err := config.Read(name, class.Check)
		if err != nil {
			t.Error(err)
			continue
		}
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		open, err := config.Parse(name, commented.ReplaceAll(text, []byte("  $1")), class.Check)
		if err != nil {
			t.Errorf("with what is commented out: %v", err)
		} else if len(open.Rules) <= len(shut.Rules) {
			t.Errorf("%s: nothing is commented out", name)
		}
	}
}

// TestLinked holds the guide to what is here.
func TestLinked(t *testing.T) {
	guide, err := os.ReadFile("../docs/guide/configuration.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range configurations(t) {
		if !strings.Contains(string(guide), "(../../examples/"+name+")") {
			t.Errorf("docs/guide/configuration.md: no link to examples/%s", name)
		}
	}
}

func TestClasses(t *testing.T) {
	const app = "/system/bin/app_process64"
	for name, tasks := range map[string]map[*class.Workload]string{
		"android.yaml": {
			{Comm: "RenderThread", Exe: app, UID: 10123, Cgroup: "/apps/uid_10123/pid_4000"}:        "ui",
			{Comm: "RenderThread", Exe: app, UID: 10123, Cgroup: "/background"}:                     "ui",
			{Comm: "ndroid.systemui", Exe: app, UID: 10090}:                                         "ui",
			{Comm: "s.nexuslauncher", Exe: app, UID: 10091}:                                         "ui",
			{Comm: "RenderEngine", Exe: "/system/bin/surfaceflinger", UID: 1000}:                    "ui",
			{Comm: "InputDispatcher", Exe: app, UID: 1000}:                                          "ui",
			{Comm: "android.anim.lf", Exe: app, UID: 1000}:                                          "ui",
			{Comm: "android.ui", Exe: app, UID: 10124}:                                              "",
			{Comm: "binder:1500_3", Exe: app, UID: 1000}:                                            "system",
			{Comm: "binder:4000_1", Exe: app, UID: 10123}:                                           "",
			{Comm: "binder:4000_1", Exe: app, UID: 10123, Cgroup: "/top-app"}:                       "foreground",
			{Comm: "Thread-2", Exe: app, UID: 10123, Cgroup: "/system-background"}:                  "background",
			{Comm: "dex2oat64", Exe: "/apex/com.android.art/bin/dex2oat64", UID: 1000}:              "background",
			{Comm: "composer@2.4-se", Exe: "/vendor/bin/hw/android.hardware.graphics.composer@2.4"}: "ui",
		},
		"desktop.yaml": {
			{Comm: "data-loop.0", Exe: "/usr/bin/pipewire"}:                                                         "audio",
			{Comm: "gnome-shell", Exe: "/usr/bin/gnome-shell"}:                                                      "shell",
			{Comm: "Xorg", Exe: "/usr/lib/xorg/Xorg"}:                                                               "shell",
			{Comm: "gnome-terminal-", Exe: "/usr/libexec/gnome-terminal-server"}:                                    "terminal",
			{Comm: "bash", Exe: "/usr/bin/bash"}:                                                                    "",
			{Comm: "cc1plus", Exe: "/usr/libexec/gcc/x86_64-linux-gnu/14/cc1plus"}:                                  "background",
			{Comm: "ld", Exe: "/usr/bin/x86_64-linux-gnu-ld.bfd"}:                                                   "background",
			{Comm: "opt cgu.3", Exe: "/opt/rust/bin/rustc"}:                                                         "background",
			{Comm: "ninja", Exe: "/usr/bin/ninja"}:                                                                  "background",
			{Comm: "clang-19", Exe: "/usr/lib/llvm-19/bin/clang"}:                                                   "background",
			{Comm: "localsearch", Cgroup: "/user.slice/user-1000.slice/user@1000.service/background.slice/x.scope"}: "background",
		},
		"user-plane.yaml": {
			{Comm: "upf", Exe: "/usr/bin/open5gs-upfd"}:             "network",
			{Comm: "upf", Exe: "/opt/free5gc/bin/upf"}:              "network",
			{Comm: "nr-gnb", Exe: "/ueransim/build/nr-gnb"}:         "network",
			{Comm: "smf", Exe: "/opt/free5gc/bin/smf"}:              "control",
			{Comm: "fluent-bit", Exe: "/fluent-bit/bin/fluent-bit"}: "background",
			{Comm: "upf", Exe: "/usr/bin/python3"}:                  "",
		},
	} {
		c, err := config.Read(name, class.Check)
		if err != nil {
			t.Error(err)
			continue
		}
		var rules []class.Rule
		for _, r := range c.Rules {
			rules = append(rules, class.Rule{Cgroup: r.Cgroup, Comm: r.Comm, Exe: r.Exe, User: r.User, Function: r.KernelFunction})
		}
		classifier, err := class.Compile(rules)
		if err != nil {
			t.Fatal(err)
		}
		for task, want := range tasks {
			got := ""
			if _, rule := classifier.Classify(*task); rule != class.NoRule {
				got = c.Rules[rule].Class
			}
			if got != want {
				t.Errorf("%s: %+v has class %q, want %q", name, *task, got, want)
			}
		}
	}
}
