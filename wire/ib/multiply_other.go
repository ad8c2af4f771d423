//go:build !amd64

package ib

// icrcByTables tells whether tables compute the ICRC faster than the standard library.
const icrcByTables = false

// multiplies tells whether CRCs are folded by carry-less multiplication.
const multiplies = false
