package ipc

// helper runs what a test starts this binary again for.
func helper() bool { return false }
