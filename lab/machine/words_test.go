package machine

import "testing"

// What a program prints is no fault of the kernel's; the kernel's own words are, wherever they begin.
func TestKernelFault(t *testing.T) {
	const end = "[    2.700000] reboot: Power down\r\n"
	for name, c := range map[string]struct{ console, want string }{
		"nothing":           {"fine\r\n" + end, ""},
		"a program's words": {"BUG: x\r\nOops: y\r\nKernel panic - not syncing\r\nfine\r\n" + end, ""},
		"of another time":   {"[12.5] BUG: x\r\n" + end, ""},
		"a bug":             {"fine\r\n[   12.345678] BUG: kernel NULL pointer\r\n", "[   12.345678] BUG: kernel NULL pointer"},
		"after its caller":  {"[12345.345678][  T123] Oops: 0002 [#1] SMP\r\n", "[12345.345678][  T123] Oops: 0002 [#1] SMP"},
		"in a line of ours": {"BUG: half a li[    1.000000] Internal error: Oops\r\nne\r\n", "[    1.000000] Internal error: Oops"},
		"cause first":       {"[    1.000000] BUG: x\n[    1.100000] Kernel panic - not syncing: Fatal", "[    1.100000] Kernel panic - not syncing: Fatal"},
		"without times":     {"BUG: kernel NULL pointer\r\nreboot: Power down\r\n", "BUG: kernel NULL pointer"},
	} {
		if got := KernelFault(c.console); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}
