# error: file:2:1: expected 'profile' at the start of a profile, found 'group'
group g
