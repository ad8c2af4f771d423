// Package powershell is the part of the PowerShell language in which the manuals' scripts are written: commands with parameters,
// pipes, variables, strings, arrays, hash tables, conditions and loops, and the commands that work on objects (Where-Object,
// Select-Object, Format-Table and others). It knows no adapters: other commands come from the Host.
//
// The grammar is that of about_Parsing, about_Operators, about_Quoting_Rules and about_Parameters of PowerShell's documentation. What
// is not in this part (functions, classes, jobs, .NET types) is a SyntaxError that says so. A script costs no more than its Limits.
package powershell
