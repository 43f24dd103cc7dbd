# expect 3 long.pb: not a rule file of TASO
${10000000*x}