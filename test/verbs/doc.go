// Package verbs runs unmodified verbs programs, as a distribution has them, on the adapters of a driver, through the C
// libraries of clib. Programs that are not installed are skipped.
package verbs
