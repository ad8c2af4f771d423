//go:build !linux

package worker

func (w *worker) lend(int) (FarMemory, error) { return FarMemory{}, errLinux }

func (w *worker) copy(CopyArgs) (float64, error) { return 0, errLinux }

func (w *worker) release() {}
