package identity

import "testing"

func TestComm(t *testing.T) {
	for text, want := range map[string]string{
		"sh\n":                        "sh",
		"two\nlines\n":                "two\nlines",
		"":                            "",
		"kworker/1:1-mm_percpu_wq\n":  "kworker/1:1",
		"kworker/u8:2+events\n":       "kworker/u8:2",
		"kworker/0:1H\n":              "kworker/0:1H",
		"kworker/R-mm_percpu_wq\n":    "kworker/R-mm_pe",
		"kworker/\n":                  "kworker/",
		"rcu_exp_gp_kthread_worker\n": "rcu_exp_gp_kthr",
		"data-loop.0\n":               "data-loop.0",
	} {
		if got := Comm(text); got != want {
			t.Errorf("%q is of the task %q, must be %q", text, got, want)
		}
	}
}
