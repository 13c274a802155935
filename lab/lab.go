// Package lab carries the lock file of the kernels into programs that run away
// from the repository. Everything else of the lab is in the packages below.
// cmd/rota-lab reads it.
package lab

import _ "embed"

// KernelsLock is the text of kernels.lock.
//
//go:embed kernels.lock
var KernelsLock string
