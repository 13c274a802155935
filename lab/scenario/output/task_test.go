package output

import "testing"

func TestSwitches(t *testing.T) {
	if n, err := Switches("cpu  1 2 3\nintr 9 8 7\nctxt 12345\nbtime 1\n"); err != nil || n != 12345 {
		t.Errorf("%v, %v", n, err)
	}
	for _, bad := range []string{"", "cpu 1 2\n", "cpu 1\nctxt \n", "cpu 1\nctxt -4\n", "cpu 1\nctxt many\n"} {
		if _, err := Switches(bad); err == nil {
			t.Errorf("%q was accepted", bad)
		}
	}
}

func TestStatus(t *testing.T) {
	const head = "Name:\thackbench\nState:\tT (stopped)\nvoluntary_ctxt_switches:\t5\n"
	comm, forced, err := Status(head + "nonvoluntary_ctxt_switches:\t17\n")
	if err != nil || comm != "hackbench" || forced != 17 {
		t.Errorf("%q, %v, %v", comm, forced, err)
	}
	for _, bad := range []string{"", head, head + "nonvoluntary_ctxt_switches:\tx\n", "\nnonvoluntary_ctxt_switches:\t17\n"} {
		if _, _, err := Status(bad); err == nil {
			t.Errorf("%q was accepted", bad)
		}
	}
}
