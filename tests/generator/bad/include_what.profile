# error: file:3:9: expected as the name of a profile, found '3'
profile p
include 3
