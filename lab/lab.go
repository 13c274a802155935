// Package lab carries the lock files of the kernels and of the peers into
// programs that run away from the repository. Everything else of the lab is in
// the packages below. cmd/rota-lab reads it.
package lab

import _ "embed"

// KernelsLock is the text of kernels.lock.
//
//go:embed kernels.lock
var KernelsLock string

// PeersLock is the text of peers.lock.
//
//go:embed peers.lock
var PeersLock string
