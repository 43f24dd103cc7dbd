# error: file:3:1: cannot include 'nowhere': cannot open: No such file or directory
profile p
include nowhere
