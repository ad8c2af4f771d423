//go:build !amd64

package ib

// icrcByTables says that tables make the ICRC faster than the standard library does.
const icrcByTables = false

// multiplies says that CRCs are folded by carry-less multiplication.
const multiplies = false
