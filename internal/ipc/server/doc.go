// Package server is the driver's side of attachments: the sessions of programs, the memory that is made for them, the
// adapters' commands carried out for them, what they may make the driver hold, and which of them meet on the direct path.
package server
