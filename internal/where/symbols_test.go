package where

import (
	"strings"
	"testing"
	"testing/fstest"
)

// kernelText is a kernel with two modules, as kallsyms says it.
const kernelText = `ffffffff81000000 T _text
ffffffff81000100 T vfs_mkdir
ffffffff81000180 t __pfx_vfs_mkdir
ffffffff81000200 T vfs_mknod
ffffffff81000300 t tcp_grow_window.isra.0
ffffffff81000310 t warn_once.cold
ffffffff81000320 t warn_once.part.0
ffffffff81000340 t twice
ffffffff81000350 t twice
ffffffff81000400 T __x64_sys_mkdir
ffffffff81000500 T bpf_map_put
ffffffff81000600 T notraced
ffffffff81000700 T poked
ffffffff81000800 T __noinstr_text_start
ffffffff81000810 T entry_work
ffffffff81000900 T __noinstr_text_end
ffffffff81000a00 T _sinittext
ffffffff81000a10 t boot_only
ffffffff81000b00 T _einittext
ffffffff82000000 D jiffies
ffffffffc0000000 t veth_xmit	[veth]
ffffffffc0000010 t common	[veth]
ffffffffc0000020 t vfs_mknod	[veth]
ffffffffc0001000 t gtp_dev_xmit	[gtp]
ffffffffc0001010 t common	[gtp]
ffffffffc0002000 t bpf_prog_1234_veth_xmit	[bpf]
`

func kernel() fstest.MapFS {
	file := func(text string) *fstest.MapFile { return &fstest.MapFile{Data: []byte(text)} }
	return fstest.MapFS{
		symbolsFile:                        file(kernelText),
		blacklistFile:                      file("0xffffffff81000700-0xffffffff81000720\tpoked\n0xffffffff81000f00-0xffffffff81000f20\tvfs_mkdir\n"),
		hookableFiles[0]:                   file("vfs_mkdir\nvfs_mknod\ntcp_grow_window.isra.0\ntwice\ntwice\npoked\n__x64_sys_mkdir\nveth_xmit [veth]\ngtp_dev_xmit [gtp]\ncommon [veth]\ncommon [gtp]\n"),
		"proc/sys/kernel/osrelease":        file("6.18\n"),
		"lib/modules/6.18/modules.builtin": file("kernel/net/ipv6/ip-tunnel.ko\n"),
		"sys/module/tcp_cubic/parameters":  file(""),
	}
}

func TestFind(t *testing.T) {
	for _, tt := range []struct {
		name, module string
		want         Function
	}{
		{"vfs_mkdir", "", Function{Name: "vfs_mkdir", addresses: []uint64{0xffffffff81000100}}},
		{"vfs_mkdir", Kernel, Function{Name: "vfs_mkdir", addresses: []uint64{0xffffffff81000100}}},
		{"veth_xmit", "", Function{Name: "veth_xmit", Module: "veth", addresses: []uint64{0xffffffffc0000000}}},
		{"veth_xmit", "veth", Function{Name: "veth_xmit", Module: "veth", addresses: []uint64{0xffffffffc0000000}}},
		{"common", "gtp", Function{Name: "common", Module: "gtp", addresses: []uint64{0xffffffffc0001010}, shared: true}},
		{"vfs_mknod", Kernel, Function{Name: "vfs_mknod", addresses: []uint64{0xffffffff81000200}, shared: true}},
		{"twice", "", Function{Name: "twice", addresses: []uint64{0xffffffff81000340, 0xffffffff81000350}, shared: true}},
		{"tcp_grow_window.isra.0", "", Function{Name: "tcp_grow_window.isra.0", addresses: []uint64{0xffffffff81000300}}},
	} {
		got, err := Find(kernel(), tt.name, tt.module)
		if err != nil || got.String() != tt.want.String() || got.shared != tt.want.shared || len(got.addresses) != len(tt.want.addresses) || got.addresses[0] != tt.want.addresses[0] {
			t.Errorf("%s: %+v, error %v, want %+v", tt.name, got, err, tt.want)
		}
	}
}

func TestFindRefuses(t *testing.T) {
	for _, tt := range []struct{ name, module, want string }{
		{"vfs_mkdri", "", `function "vfs_mkdri": is unknown: did you mean vfs_mkdir or vfs_mknod?`},
		{"sys_mkdir", "", `function "sys_mkdir": is unknown: did you mean vfs_mkdir or __x64_sys_mkdir?`},
		{"veth_xmti", "veth", `function "veth_xmti" of module veth: is unknown: did you mean veth_xmit?`},
		{"nothing_like_it", "", `function "nothing_like_it": is unknown: look for it in /proc/kallsyms; `},
		{"bpf_prog_1234_veth_xmit", "", `is unknown`},
		{"veth_xmit", "gtp", `function "veth_xmit": is not in module gtp but in module veth: write --module veth`},
		{"vfs_mkdir", "veth", `function "vfs_mkdir": is not in module veth but in the kernel: write --module vmlinux`},
		{"veth_xmit", "br_netfilter", `module "br_netfilter": is not loaded: load it with: modprobe br_netfilter`},
		{"x", "ip_tunnel", `module "ip_tunnel": is a part of this kernel: leave --module away`},
		{"x", "tcp_cubic", `module "tcp_cubic": is a part of this kernel: leave --module away`},
		{"common", "", `function "common": is in module gtp and module veth: say which with --module, as --module veth`},
		{"vfs_mknod", "", `function "vfs_mknod": is in the kernel and module veth: say which with --module, as --module veth`},
		{"tcp_grow_window", "", `function "tcp_grow_window": the compiler has made tcp_grow_window.isra.0 of it: name that`},
		{"warn_once", "", `function "warn_once": is inlined into its callers, but for the rare part warn_once.cold and warn_once.part.0: name that, or a function that calls it`},
		{"jiffies", "", `function "jiffies": is data, not a function: name a function that uses it`},
		{"__pfx_vfs_mkdir", "", `function "__pfx_vfs_mkdir": is the space before a function: name that: vfs_mkdir`},
		{"bpf_map_put", "", `function "bpf_map_put": is of the machinery that watches (BPF and tracing), which can't watch itself: name a function that calls it, or one that it calls`},
		{"notraced", "", `function "notraced": can't be hooked (notrace: not in /sys/kernel/tracing/available_filter_functions): name a function that calls it, or one that it calls`},
		{"poked", "", `function "poked": the kernel forbids to hook it (/sys/kernel/debug/kprobes/blacklist): name`},
		{"entry_work", "", `function "entry_work": runs where the kernel can't be watched (noinstr): name`},
		{"boot_only", "", `function "boot_only": ran when the kernel booted, and is gone (init text): name`},
	} {
		if f, err := Find(kernel(), tt.name, tt.module); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %+v, error %v, want %s", tt.name, f, err, tt.want)
		}
	}
}

// What can't be read is not held against a function: the kernel decides then.
func TestFindWithoutLists(t *testing.T) {
	root := kernel()
	delete(root, hookableFiles[0])
	if _, err := Find(root, "notraced", ""); err != nil {
		t.Error(err)
	}
	root[hookableFiles[1]] = kernel()[hookableFiles[0]]
	if _, err := Find(root, "notraced", ""); err == nil || !strings.Contains(err.Error(), "/sys/kernel/debug/tracing/") {
		t.Error(err)
	}
	hidden := kernel()
	hidden[symbolsFile].Data = []byte("0000000000000000 T vfs_mkdir\n0000000000000000 T poked\n")
	if f, err := Find(hidden, "vfs_mkdir", ""); err == nil || !strings.Contains(err.Error(), "forbids") {
		t.Errorf("without addresses names decide: %+v, error %v", f, err)
	}
	delete(hidden, blacklistFile)
	if f, err := Find(hidden, "vfs_mkdir", ""); err != nil || len(f.addresses) != 0 || f.shared {
		t.Errorf("%+v, error %v", f, err)
	}
	hidden[symbolsFile].Data = nil
	if _, err := Find(hidden, "vfs_mkdir", ""); err == nil || !strings.Contains(err.Error(), "CONFIG_KALLSYMS=y") {
		t.Error(err)
	}
	delete(hidden, symbolsFile)
	if _, err := Find(hidden, "vfs_mkdir", ""); err == nil || !strings.Contains(err.Error(), "mount /proc") {
		t.Error(err)
	}
}

func TestCheck(t *testing.T) {
	for _, tt := range []struct{ name, module, want string }{
		{"vfs_mkdir", "", ""}, {"a.constprop.0", "nf_tables", ""}, {strings.Repeat("a", 128), "", ""},
		{"", "", `function: has no name`},
		{strings.Repeat("a", 129), "", `is longer than 128 letters`},
		{"../../etc", "", `function "../../etc": is not a name: use . _ A-Z a-z and 0-9 only`},
		{"a b", "", `is not a name`}, {"a\n", "", `is not a name`}, {"vfs:x", "", `is not a name`}, {"ä", "", `is not a name`},
		{"a", "nf-tables", `module "nf-tables": has a - in it: write nf_tables, as the kernel does`},
		{"a", "nf/tables", `module "nf/tables": is not a name`},
	} {
		err := Check(tt.name, tt.module)
		if (err == nil) != (tt.want == "") || err != nil && !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%q %q: %v, want %s", tt.name, tt.module, err, tt.want)
		}
	}
}

// FuzzLists reads files of the kernel that hold anything.
func FuzzLists(f *testing.F) {
	f.Add(kernelText, "vfs_mkdir\n", "0x1-0x2\tx\n", "vfs_mkdir", "")
	f.Add("0 T a\n", "a [b] x\n", "0x0-\n", "a", "b")
	f.Add("ffffffffffffffff w a.cold [b]", "\x00", "-", "a", Kernel)
	f.Fuzz(func(t *testing.T, symbols, hookable, blacklist, name, module string) {
		root := fstest.MapFS{
			symbolsFile:      {Data: []byte(symbols)},
			hookableFiles[0]: {Data: []byte(hookable)},
			blacklistFile:    {Data: []byte(blacklist)},
		}
		found, err := Find(root, name, module)
		if err == nil && (found.Name != name || module != "" && module != Kernel && found.Module != module) {
			t.Errorf("%q %q: found %+v", name, module, found)
		}
		if err == nil && !strings.Contains(symbols, name) {
			t.Errorf("%q: found what is not there", name)
		}
	})
}
