package server

// Limits for the tests of package server_test.
const (
	SessionBytes  = sessionBytes
	MaxRefusals   = maxRefusals
	PopulateFirst = populateFirst
)
