# expect 3 not a rule file of TASO
hello ${1000*garbage }
