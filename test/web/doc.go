// Package web clicks through the pages of the device manager in headless Chromium, against a running driver with
// traffic. Its tests are skipped where no Chromium is found.
package web
