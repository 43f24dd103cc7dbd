# error: file:3:1: expected a group, found the end of the file
profile p
