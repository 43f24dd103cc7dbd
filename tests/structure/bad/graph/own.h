#pragma once
int  badly_formatted ;
