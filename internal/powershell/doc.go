// Package powershell is the part of the PowerShell language in which the manuals' scripts are written, and those around them: commands
// with parameters, pipes, variables, strings, arrays, hash tables, conditions, loops, functions, classes and errors, and the commands
// that work on objects (Where-Object, Select-Object, Format-Table and others). It knows no adapters: other commands come from the Host.
//
// The grammar is that of about_Parsing, about_Operators, about_Quoting_Rules, about_Parameters, about_Functions, about_Scopes,
// about_Classes, about_Trap and about_Error_Handling of PowerShell's documentation. What is not in this part (jobs, most .NET types) is
// a SyntaxError that says so. A script costs no more than its Limits.
package powershell
